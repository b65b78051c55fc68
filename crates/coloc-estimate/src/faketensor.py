# Runs sys.argv[1:] with fake CUDA tensors and reports the most bytes that were alive at once.
import os
import runpy
import sys

try:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.weak import WeakIdKeyDictionary
except ImportError:
    sys.stderr.write("COLOC_FAKETENSOR_NO_TORCH\n")
    sys.exit(3)

STEPS = int(os.environ.get("COLOC_FAKETENSOR_STEPS", "3"))


class Enough(BaseException):
    """Raised once enough optimizer steps were seen."""


class Meter(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.storages = WeakIdKeyDictionary()
        self.peak = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for leaf in torch.utils._pytree.tree_leaves(result):
            if isinstance(leaf, torch.Tensor) and leaf.device.type == "cuda":
                storage = leaf.untyped_storage()
                self.storages[storage] = -(-storage.nbytes() // 512) * 512
        self.peak = max(self.peak, sum(self.storages.values()))
        return result


def main():
    arguments = sys.argv[1:]
    sys.argv = arguments
    seen = 0
    original = torch.optim.Optimizer.register_step_post_hook

    def count(optimizer, args, kwargs):
        nonlocal seen
        seen += 1
        if seen >= STEPS:
            raise Enough()

    initial = torch.optim.Optimizer.__init__

    def watched(self, *args, **kwargs):
        initial(self, *args, **kwargs)
        original(self, count)

    torch.optim.Optimizer.__init__ = watched
    meter = Meter()
    try:
        with FakeTensorMode(allow_non_fake_inputs=True), meter:
            runpy.run_path(arguments[0], run_name="__main__")
    except Enough:
        pass
    print("COLOC_FAKETENSOR_PEAK_BYTES=%d" % meter.peak)


main()
