"""Plain distributed data parallel: what srun or torchrun has started meets by gloo."""

import os

import torch
import torch.distributed as dist

rank = int(os.environ.get("RANK", os.environ.get("SLURM_PROCID", "0")))
size = int(os.environ.get("WORLD_SIZE", os.environ.get("SLURM_NTASKS", "1")))
dist.init_process_group("gloo", rank=rank, world_size=size)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
model(torch.ones(2, 4)).sum().backward()
count = torch.ones(1)
dist.all_reduce(count)
print(f"process {rank} of {int(count.item())}", flush=True)
dist.destroy_process_group()
