# Runs a training script with GPU tensors that have shapes but no memory, and reports the most bytes that
# were alive at once. The script's CPU tensors are real: samplers and data loaders work as they are.
import os
import runpy
import sys
import weakref

try:
    import torch
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves, tree_map
except ImportError:
    sys.stderr.write("COLOC_FAKETENSOR_NO_TORCH\n")
    sys.exit(3)

STEPS = int(os.environ.get("COLOC_FAKETENSOR_STEPS", "3"))
FAKE = FakeTensorMode(allow_non_fake_inputs=True)


class Enough(BaseException):
    """Raised once enough optimizer steps were seen."""


class Meter(TorchDispatchMode):
    """Adds up the storages of fake tensors, each rounded as the caching allocator does."""

    def __init__(self):
        super().__init__()
        self.known, self.live, self.peak = set(), 0, 0
        self.convolves = self.normalises = False

    def forget(self, key, size):
        self.known.discard(key)
        self.live -= size

    def see(self, result):
        for leaf in tree_leaves(result):
            if not isinstance(leaf, FakeTensor):
                continue
            storage = leaf.untyped_storage()
            key = storage._cdata
            if key not in self.known:
                size = -(-storage.nbytes() // 512) * 512
                self.known.add(key)
                self.live += size
                weakref.finalize(storage, self.forget, key, size)
        self.peak = max(self.peak, self.live)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        name = str(function)
        self.convolves |= "convolution" in name
        self.normalises |= "batch_norm" in name
        self.see(result)
        return result

    def loads(self):
        """The libraries that a GPU would have loaded."""
        if not self.convolves:
            return "plain"
        return "batch_norm" if self.normalises else "convolutions"


METER = Meter()


def is_gpu(value):
    if isinstance(value, torch.device):
        return value.type == "cuda"
    return isinstance(value, str) and (value == "cuda" or value.startswith("cuda:"))


def fake(tensor):
    """The GPU's copy of a tensor."""
    if isinstance(tensor, FakeTensor):
        return tensor
    with torch._C.DisableTorchFunction():
        copy = FAKE.from_tensor(tensor.detach())
    METER.see(copy)
    return copy


class Devices(TorchFunctionMode):
    """What is sent to or made on a GPU becomes a fake tensor of the CPU, whose autograd always works."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function is torch.Tensor.cuda:
            return fake(args[0])
        if function is torch.Tensor.pin_memory:
            return args[0]
        if function in (torch.Tensor.item, torch.Tensor.tolist) and isinstance(args[0], FakeTensor):
            return answer(args[0]) if function is torch.Tensor.item else listed(args[0])
        if function is torch.Tensor.__bool__ and isinstance(args[0], FakeTensor):
            return False
        # These only read their arguments.
        reads = function in (torch._C._nn._parse_to, torch.device)
        if reads or not any(is_gpu(leaf) for leaf in tree_leaves((args, kwargs))):
            return function(*args, **kwargs)
        args, kwargs = tree_map(lambda leaf: "cpu" if is_gpu(leaf) else leaf, (args, kwargs))
        if args and isinstance(args[0], torch.Tensor):
            return function(fake(args[0]), *args[1:], **kwargs)
        with FAKE:
            return function(*args, **kwargs)


def answer(tensor):
    """A number for a value that nobody computed: harmless in a log line, false in a test for faults."""
    if tensor.dtype == torch.bool:
        return False
    return 1.0 if tensor.is_floating_point() else 1


def listed(tensor):
    if tensor.dim() == 0:
        return answer(tensor)
    return [listed(part) for part in tensor.unbind(0)]


def convert_module(self, function, recurse=True, memo={}):
    """Module.to and its kin; a parameter that two modules share stays one."""
    if recurse:
        for child in self.children():
            child._apply(function)
    for key, parameter in self._parameters.items():
        if parameter is None:
            continue
        with torch.no_grad():
            moved = function(parameter)
        if moved is not parameter:
            if id(parameter) not in memo:
                # The old parameter is kept, so that its id is not given to another.
                memo[id(parameter)] = parameter, torch.nn.Parameter(moved, parameter.requires_grad)
            self._parameters[key] = memo[id(parameter)][1]
    for key, buffer in self._buffers.items():
        if buffer is not None:
            self._buffers[key] = function(buffer)
    return self


def pretend_gpu():
    cuda = torch.cuda
    cuda.is_available = lambda: True
    cuda.device_count = lambda: 1
    cuda.current_device = lambda: 0
    cuda.get_device_name = lambda device=None: "fake"
    cuda.get_device_capability = lambda device=None: (8, 0)
    for name in ("set_device", "synchronize", "empty_cache", "manual_seed", "manual_seed_all",
                 "reset_peak_memory_stats"):
        setattr(cuda, name, lambda *args, **kwargs: None)
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"):
        setattr(cuda, name, lambda *args, **kwargs: 0)
    # Streams would wake the driver.
    cuda.is_current_stream_capturing = lambda: False
    for name in ("_accelerator_graph_capture_health_check", "_cuda_graph_capture_health_check"):
        if hasattr(torch.optim.Optimizer, name):
            setattr(torch.optim.Optimizer, name, lambda self: None)
    # A compiler would trace the fake tensors once more.
    torch.compile = lambda model=None, **options: model if model is not None else lambda inner: inner
    torch.nn.Module._apply = convert_module
    # First values take time and touch memory, and nobody looks at them.
    for name in dir(torch.nn.init):
        if name.endswith("_") and not name.startswith("_"):
            setattr(torch.nn.init, name, lambda tensor, *args, **kwargs: tensor)
    loader = torch.utils.data.DataLoader.__init__

    def unpinned(self, *args, **kwargs):
        kwargs.pop("pin_memory", None)
        loader(self, *args, **kwargs)

    torch.utils.data.DataLoader.__init__ = unpinned


def count_steps():
    seen = 0
    initial = torch.optim.Optimizer.__init__

    def count(optimizer, args, kwargs):
        nonlocal seen
        seen += 1
        if seen >= STEPS:
            raise Enough()

    def watched(self, *args, **kwargs):
        initial(self, *args, **kwargs)
        for group in self.param_groups:
            # What a GPU would choose: one temporary of every parameter at once.
            if group.get("foreach", False) is None and not group.get("fused"):
                group["foreach"] = True
        self.register_step_post_hook(count)

    torch.optim.Optimizer.__init__ = watched
    return lambda: seen


def run(arguments):
    while arguments and arguments[0] in ("-u", "-B", "-O", "-E", "-s", "-I"):
        arguments = arguments[1:]
    if arguments[:1] == ["-m"]:
        sys.argv = arguments[1:]
        sys.path.insert(0, "")
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path.insert(0, os.path.dirname(os.path.abspath(arguments[0])))
        runpy.run_path(arguments[0], run_name="__main__")


def main():
    pretend_gpu()
    steps = count_steps()
    try:
        with METER, Devices():
            run(sys.argv[1:])
    except Enough:
        pass
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
    sys.stdout.flush()
    print("\nCOLOC_FAKETENSOR_STEPS_SEEN=%d" % steps())
    print("COLOC_FAKETENSOR_LOADS=%s" % METER.loads())
    print("COLOC_FAKETENSOR_PEAK_BYTES=%d" % METER.peak)


main()
