"""What nvitop's library costs for the samples that the monitor takes: see monitor.rs."""

import time

from nvitop import Device

LOOKS = 100
PERIOD = 0.1


def look(devices):
    """Memory, utilization, power and processes with their users: as far as nvitop goes, what a look of ours has."""
    samples = 0
    for device in devices:
        device.memory_info()
        device.utilization_rates()
        device.power_usage()
        for process in device.processes().values():
            process.gpu_memory()
            process.username()
        samples += 1
    return samples


def main():
    devices = Device.all()
    look(devices)
    began, cpu = time.monotonic(), time.process_time()
    samples = 0
    for at in range(1, LOOKS + 1):
        time.sleep(max(0.0, began + at * PERIOD - time.monotonic()))
        samples += look(devices)
    used = (time.process_time() - cpu) / (time.monotonic() - began)
    print(f"  nvitop, 10 Hz for 10 s: {samples} samples, {used * 100:.2f} % of a core")


if __name__ == "__main__":
    main()
