#!/usr/bin/python3
"""Trains a small network in PyTorch and writes its weights for the Go program beside it; or checks the weights that it gives back.

Usage: xor.py FILE.safetensors            trains, and writes the file
       xor.py --check FILE.safetensors    loads the file with strict=True, and prints the outputs
"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "scripts"))
import torch  # noqa: E402
import torch.nn as nn  # noqa: E402
from pytorch_safetensors import load_file, save_file  # noqa: E402

torch.manual_seed(1)
model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
x = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
y = torch.tensor([[0.0], [1.0], [1.0], [0.0]])
if sys.argv[1:2] == ["--check"]:
    model.load_state_dict(load_file(sys.argv[2]), strict=True)
    print(*("%.3f" % v for v in torch.sigmoid(model(x)).flatten().tolist()))
else:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(200):
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(model(x), y).backward()
        optimizer.step()
    save_file(model.state_dict(), sys.argv[1])
