"""Launchers of distributed training in tasks of coloc: each starts as many processes as it was asked for.

Usage: check.py COLOC. A daemon with emulated GPUs is started; the processes meet by gloo on the CPU.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

COLOC = os.path.abspath(sys.argv[1])
HERE = pathlib.Path(__file__).resolve().parent
BIN = pathlib.Path(sys.executable).parent

# The processes meet on the CPU: the emulated driver is none that torch could compute on.
HIDE = "export CUDA_VISIBLE_DEVICES="
# What is submitted, with sbatch's options and the command in the script.
CASES = {
    "a plain script by srun": ("-n 2 -G 2", f"srun python {HERE}/ddp.py"),
    "torchrun": ("-G 2", f"torchrun --nproc_per_node=$SLURM_GPUS_ON_NODE --master_port $MASTER_PORT {HERE}/ddp.py"),
    "Lightning by itself": ("-G 2", f"python {HERE}/lightning_fit.py"),
    "Lightning with --ntasks-per-node=1": ("--ntasks-per-node=1 -G 2", f"python {HERE}/lightning_fit.py"),
    "Lightning by srun": ("--ntasks-per-node=2 -G 2", f"srun python {HERE}/lightning_fit.py"),
    "Accelerate": (
        "-G 2",
        f"accelerate launch --multi_gpu --num_processes 2 --num_machines 1 --mixed_precision no --dynamo_backend no "
        f"--main_process_port $MASTER_PORT {HERE}/accelerate_fit.py",
    ),
}


def main():
    with tempfile.TemporaryDirectory() as place:
        environment = dict(os.environ, COLOC_SOCKET=f"{place}/s.sock", COLOC_CONFIG="/dev/null", HOME=place)
        environment["PATH"] = f"{BIN}:{environment['PATH']}"
        daemon = subprocess.Popen(
            [COLOC, "daemon", "--emulate", "2xA100-40GB", "--state", f"{place}/state"],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        try:
            wait_for(lambda: os.path.exists(f"{place}/s.sock"))
            failed = [name for name, case in CASES.items() if not starts_two(place, environment, name, *case)]
        finally:
            daemon.terminate()
            daemon.wait()
    if failed:
        sys.exit(f"not as many processes as asked for: {', '.join(failed)}")


def starts_two(place, environment, name, options, command):
    script = pathlib.Path(place, "job.sh")
    script.write_text(f"#!/bin/bash\n#SBATCH {options} -o {place}/out.txt --open-mode=truncate\n{HIDE}\n{command}\n")
    submit = [COLOC, "submit", "-W", "-t", "10", str(script)]
    code = subprocess.run(submit, env=environment, cwd=place, capture_output=True).returncode
    output = pathlib.Path(place, "out.txt").read_text()
    good = code == 0 and all(f"process {rank} of 2\n" in output for rank in (0, 1))
    print(f"{'agrees' if good else 'DIFFERS'}: {name}", flush=True)
    if not good:
        print(output)
    return good


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            sys.exit("the daemon does not start")
        time.sleep(0.05)


main()
