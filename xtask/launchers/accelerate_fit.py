"""Hugging Face Accelerate on the CPU."""

import torch
from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
count = accelerator.gather(torch.ones(1)).sum()
print(f"process {accelerator.process_index} of {int(count.item())}", flush=True)
