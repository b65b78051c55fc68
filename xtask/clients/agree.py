"""Other people's clients read an emulated fleet with two trainers on it and must agree with coloc.

Run by `cargo xtask clients` as: coloc emu run --fleet 4xA100-40GB -- python agree.py COLOC
"""

import json
import logging
import os
import subprocess
import sys
import time

COLOC = sys.argv[1]
MIB = 1 << 20
checks = 0


def coloc(*arguments):
    return subprocess.run([COLOC, *arguments], check=True, capture_output=True, text=True).stdout


def fleet():
    return json.loads(coloc("emu", "show", "--json"))


def agree(who, what, seen, expected):
    global checks
    checks += 1
    if seen != expected:
        sys.exit(f"{who} disagrees on {what}: {seen!r}, and the fleet has {expected!r}")


def percent(share):
    return int(share * 100 + 0.5)


def start_trainers():
    """One trainer on GPU 0 and one that takes GPUs 1 and 2; the last GPU stays idle."""
    tasks = [("resnet", "0"), ("xlnet_base_cased_2", "1,2")]
    trainers = []
    for profile, devices in tasks:
        environment = dict(os.environ, CUDA_VISIBLE_DEVICES=devices)
        command = [COLOC, "emu", "train", "--profile", profile]
        trainers.append(subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL))
    plateaus = {0: 3934 * MIB, 1: 9192 * MIB, 2: 9192 * MIB, 3: 0}
    deadline = time.monotonic() + 60
    while any(gpu["memory_used_bytes"] != plateaus[gpu["index"]] for gpu in fleet()["gpus"]):
        if time.monotonic() > deadline:
            sys.exit(f"the trainers never settled: {fleet()}")
        time.sleep(0.05)
    return trainers


def check_coloc_gpus(truth):
    """coloc's own monitor goes through NVML, as everybody else's."""
    seen = json.loads(coloc("gpus", "--json"))
    agree("coloc gpus", "the number of GPUs", len(seen["gpus"]), len(truth["gpus"]))
    for own, gpu in zip(seen["gpus"], truth["gpus"]):
        for field in ["index", "uuid", "name", "memory_total_bytes", "memory_used_bytes", "power_w",
                      "power_limit_w", "energy_j", "temperature_c", "sm_clock_mhz"]:
            agree("coloc gpus", field, own[field], gpu[field])
        agree("coloc gpus", "utilization", percent(own["utilization"]), percent(gpu["gract"]))
        pids = [(p["pid"], p["memory_bytes"]) for p in own["processes"]]
        agree("coloc gpus", "processes", pids, [(p["pid"], p["memory_bytes"]) for p in gpu["processes"]])


def check_pynvml(truth):
    import pynvml as nvml

    nvml.nvmlInit()
    agree("nvidia-ml-py", "the number of GPUs", nvml.nvmlDeviceGetCount(), len(truth["gpus"]))
    for gpu in truth["gpus"]:
        def same(what, seen, expected):
            agree("nvidia-ml-py", what, seen, expected)

        handle = nvml.nvmlDeviceGetHandleByIndex(gpu["index"])
        for memory in [nvml.nvmlDeviceGetMemoryInfo(handle),
                       nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)]:
            same("total memory", memory.total, gpu["memory_total_bytes"])
            same("used memory", memory.used, gpu["memory_used_bytes"])
        same("name", nvml.nvmlDeviceGetName(handle), gpu["name"])
        same("uuid", nvml.nvmlDeviceGetUUID(handle), gpu["uuid"])
        same("power", nvml.nvmlDeviceGetPowerUsage(handle), round(gpu["power_w"] * 1000))
        same("power limit", nvml.nvmlDeviceGetEnforcedPowerLimit(handle), gpu["power_limit_w"] * 1000)
        same("energy", nvml.nvmlDeviceGetTotalEnergyConsumption(handle), round(gpu["energy_j"] * 1000))
        same("temperature", nvml.nvmlDeviceGetTemperature(handle, 0), gpu["temperature_c"])
        same("SM clock", nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM), gpu["sm_clock_mhz"])
        same("memory clock", nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM), gpu["memory_clock_mhz"])
        rates = nvml.nvmlDeviceGetUtilizationRates(handle)
        same("utilization", (rates.gpu, rates.memory), (percent(gpu["gract"]), percent(gpu["drama"])))
        processes = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
        same("processes", [(p.pid, p.usedGpuMemory) for p in processes],
             [(p["pid"], p["memory_bytes"]) for p in gpu["processes"]])
        if processes:
            samples = nvml.nvmlDeviceGetProcessUtilization(handle, 0)
            same("utilization by process", [(s.pid, s.smUtil, s.memUtil) for s in samples],
                 [(p["pid"], percent(p["gract"]), percent(p["drama"])) for p in gpu["processes"]])
    nvml.nvmlShutdown()


def check_gpustat(truth):
    import gpustat

    seen = gpustat.new_query().jsonify()
    for own, gpu in zip(seen["gpus"], truth["gpus"], strict=True):
        expected = {
            "index": gpu["index"],
            "uuid": gpu["uuid"],
            "name": gpu["name"],
            "temperature.gpu": gpu["temperature_c"],
            "utilization.gpu": percent(gpu["gract"]),
            # Milliwatts become watts by way of integer division.
            "power.draw": round(gpu["power_w"] * 1000) // 1000,
            "enforced.power.limit": int(gpu["power_limit_w"]),
            "memory.used": gpu["memory_used_bytes"] // MIB,
            "memory.total": gpu["memory_total_bytes"] // MIB,
        }
        for field, value in expected.items():
            agree("gpustat", field, own[field], value)
        agree("gpustat", "processes", [(p["pid"], p["gpu_memory_usage"]) for p in own["processes"]],
              [(p["pid"], p["memory_bytes"] // MIB) for p in gpu["processes"]])


def check_nvitop(truth):
    from nvitop import Device

    for own, gpu in zip(Device.all(), truth["gpus"], strict=True):
        seen = [own.index, own.name(), own.uuid(), own.memory_total(), own.memory_used(), own.gpu_utilization(),
                own.memory_utilization(), own.power_usage(), own.power_limit(), own.temperature(),
                own.total_energy_consumption() if hasattr(own, "total_energy_consumption") else None,
                own.sm_clock(), own.memory_clock(), own.mig_mode()]
        energy = round(gpu["energy_j"] * 1000) if hasattr(own, "total_energy_consumption") else None
        expected = [gpu["index"], gpu["name"], gpu["uuid"], gpu["memory_total_bytes"], gpu["memory_used_bytes"],
                    percent(gpu["gract"]), percent(gpu["drama"]), round(gpu["power_w"] * 1000),
                    round(gpu["power_limit_w"] * 1000), gpu["temperature_c"], energy, gpu["sm_clock_mhz"],
                    gpu["memory_clock_mhz"], "Enabled" if gpu["mig"] else "Disabled"]
        agree("nvitop", f"GPU {own.index}", seen, expected)
        processes = [(pid, process.gpu_memory(), process.gpu_sm_utilization())
                     for pid, process in own.processes().items()]
        agree("nvitop", "processes", processes,
              [(p["pid"], p["memory_bytes"], percent(p["gract"])) for p in gpu["processes"]])
    screen = subprocess.run([sys.executable, "-m", "nvitop", "-1"], capture_output=True, text=True)
    agree("nvitop -1", "exit code", screen.returncode, 0)
    for gpu in truth["gpus"]:
        for process in gpu["processes"]:
            agree("nvitop -1", "shown processes", str(process["pid"]) in screen.stdout, True)


def check_codecarbon(truth):
    logging.getLogger("codecarbon").setLevel(logging.ERROR)
    from codecarbon.core.gpu import AllGPUDevices, is_nvidia_system

    agree("codecarbon", "finding GPUs", is_nvidia_system(), True)
    for own, gpu in zip(AllGPUDevices().get_gpu_details(), truth["gpus"], strict=True):
        expected = {
            "name": gpu["name"],
            "uuid": gpu["uuid"],
            "total_memory": gpu["memory_total_bytes"],
            "used_memory": gpu["memory_used_bytes"],
            "free_memory": gpu["memory_total_bytes"] - gpu["memory_used_bytes"],
            "temperature": gpu["temperature_c"],
            "total_energy_consumption": round(gpu["energy_j"] * 1000),
            "power_usage": gpu["power_w"],
            "power_limit": gpu["power_limit_w"],
            "gpu_utilization": percent(gpu["gract"]),
            "compute_mode": 0,
        }
        for field, value in expected.items():
            agree("codecarbon", field, own[field], value)
        agree("codecarbon", "processes", [p["pid"] for p in own["compute_processes"]],
              [p["pid"] for p in gpu["processes"]])


def check_zeus_on_running_clock():
    """Energy over a window is power times time."""
    from zeus.monitor import ZeusMonitor

    coloc("emu", "clock", "--run", "--time-scale", "1")
    monitor = ZeusMonitor(gpu_indices=[0, 1, 2, 3], approx_instant_energy=False)
    monitor.begin_window("check", sync_execution=False)
    time.sleep(2)
    window = monitor.end_window("check", sync_execution=False)
    for gpu in fleet()["gpus"]:
        expected = gpu["power_w"] * window.time
        error = abs(window.gpu_energy[gpu["index"]] / expected - 1)
        print(f"zeus: GPU {gpu['index']}: {window.gpu_energy[gpu['index']]:.2f} J in {window.time:.4f} s, "
              f"{gpu['power_w']:.2f} W, off by {error:.3%}")
        agree("zeus", "energy within 1 % of power times time", error < 0.01, True)


def check_cuda_bindings():
    """NVIDIA's own Python bindings to the driver API: memory is booked, copied, refused and given back."""
    from cuda.bindings import driver as cuda

    def call(function, *arguments):
        code, *results = function(*arguments)
        agree("cuda-bindings", function.__name__, code, cuda.CUresult.CUDA_SUCCESS)
        return results[0] if len(results) == 1 else results

    call(cuda.cuInit, 0)
    agree("cuda-bindings", "the number of GPUs", call(cuda.cuDeviceGetCount), 4)
    device = call(cuda.cuDeviceGet, 3)
    agree("cuda-bindings", "uuid", "GPU-" + call(cuda.cuDeviceGetUuid, device).bytes.hex(),
          fleet()["gpus"][3]["uuid"].replace("-", "").replace("GPU", "GPU-"))
    call(cuda.cuCtxCreate, 0, device)
    free, total = call(cuda.cuMemGetInfo)
    memory = call(cuda.cuMemAlloc, 1 << 30)
    agree("cuda-bindings", "free memory", call(cuda.cuMemGetInfo), [free - (1 << 30), total])
    agree("cuda-bindings", "used memory", fleet()["gpus"][3]["memory_used_bytes"], total - free + (1 << 30))
    there, back = bytes(range(256)), bytearray(256)
    call(cuda.cuMemcpyHtoD, memory, there, 256)
    call(cuda.cuMemcpyDtoH, back, memory, 256)
    agree("cuda-bindings", "a copy there and back", bytes(back), there)
    refused = cuda.cuMemAlloc(60 << 30)[0]
    agree("cuda-bindings", "60 GiB", refused, cuda.CUresult.CUDA_ERROR_OUT_OF_MEMORY)
    call(cuda.cuMemFree, memory)
    agree("cuda-bindings", "free memory", call(cuda.cuMemGetInfo), [free, total])


def main():
    trainers = start_trainers()
    coloc("emu", "clock", "--freeze")
    truth = fleet()
    for check in [check_coloc_gpus, check_pynvml, check_gpustat, check_nvitop, check_codecarbon]:
        check(truth)
    agree("the fleet", "standing still", fleet(), truth)
    check_zeus_on_running_clock()
    check_cuda_bindings()
    for trainer in trainers:
        trainer.kill()
        trainer.wait()
    names = "nvidia-ml-py, gpustat, nvitop, codecarbon, zeus and cuda-bindings"
    print(f"{names} agree with the fleet and with coloc gpus: {checks} checks")


main()
