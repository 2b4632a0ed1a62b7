#!/usr/bin/python3
"""Converts a PyTorch state dict to a safetensors file and back, with PyTorch and NumPy alone.

Usage: pytorch_safetensors.py IN OUT
One of the two ends in .safetensors, the other is a file of torch.save: a state dict, or a dict that has one under "state_dict" or "model".
As a module it has load_file(path) and save_file(state, path), as the package safetensors.torch does.

anygpu reads the result with checkpoint.LoadFile and LoadStateDict; what checkpoint.SaveFile wrote goes the other way:

    model.load_state_dict(pytorch_safetensors.load_file("model.safetensors"), strict=True)
"""
import json
import struct
import sys

import numpy as np
import torch

DTYPES = {
    "BOOL": torch.bool, "U8": torch.uint8, "I8": torch.int8, "I16": torch.int16, "I32": torch.int32, "I64": torch.int64,
    "F16": torch.float16, "BF16": torch.bfloat16, "F32": torch.float32, "F64": torch.float64,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
MAX_HEADER = 100 << 20


def size_of(dtype):
    return torch.empty(0, dtype=dtype).element_size()


def to_bytes(t):
    """The elements of a tensor, row-major and little-endian."""
    t = t.detach().cpu().contiguous()
    if t.dtype == torch.bfloat16:  # NumPy has none
        t = t.view(torch.int16)
    a = t.numpy()
    return a.astype(a.dtype.newbyteorder("<"), copy=False).tobytes()


def from_bytes(data, dtype, shape):
    stored = torch.int16 if dtype == torch.bfloat16 else dtype
    kind = torch.empty(0, dtype=stored).numpy().dtype
    a = np.frombuffer(data, kind.newbyteorder("<")).astype(kind)  # a copy that can be written to
    t = torch.from_numpy(a)
    if dtype == torch.bfloat16:
        t = t.view(torch.bfloat16)
    return t.reshape(shape)


def save_file(state, path, metadata=None):
    """Writes tensors by name. Wide elements come first, so that everything is aligned."""
    for name, t in state.items():
        if t.dtype not in NAMES:
            raise ValueError("%s has dtype %s, which safetensors files do not have" % (name, t.dtype))
    order = sorted(state, key=lambda name: (-size_of(state[name].dtype), name))
    header, at = {"__metadata__": dict({"format": "pt"}, **(metadata or {}))}, 0
    for name in order:
        t = state[name]
        end = at + t.numel() * size_of(t.dtype)
        header[name] = {"dtype": NAMES[t.dtype], "shape": list(t.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)))
        f.write(text)
        for name in order:
            f.write(to_bytes(state[name]))


def load_file(path):
    """Returns the tensors of a file by name."""
    with open(path, "rb") as f:
        head = f.read(8)
        if len(head) < 8 or struct.unpack("<Q", head)[0] > MAX_HEADER:
            raise ValueError("%s is not a safetensors file" % path)
        header = json.loads(f.read(struct.unpack("<Q", head)[0]))
        data = f.read()
    state, used = {}, 0
    header.pop("__metadata__", None)
    for name, entry in sorted(header.items(), key=lambda e: e[1]["data_offsets"]):
        dtype, shape, (begin, end) = DTYPES.get(entry["dtype"]), entry["shape"], entry["data_offsets"]
        if dtype is None:
            raise ValueError("%s: %s has dtype %s" % (path, name, entry["dtype"]))
        size = size_of(dtype)
        for n in shape:
            size *= n
        if begin != used or end - begin != size or end > len(data):
            raise ValueError("%s: the data of %s do not fit its shape and place" % (path, name))
        state[name], used = from_bytes(data[begin:end], dtype, shape), end
    if used != len(data):
        raise ValueError("%s: there are data after the last tensor" % path)
    return state


def load_torch(path):
    """Returns the state dict of a file of torch.save. Nothing but tensors and plain containers is unpickled."""
    state = torch.load(path, map_location="cpu", weights_only=True)
    for key in ("state_dict", "model"):
        if isinstance(state, dict) and isinstance(state.get(key), dict):
            state = state[key]
    if not isinstance(state, dict) or not all(isinstance(t, torch.Tensor) for t in state.values()):
        raise ValueError("%s has no state dict: a dict of tensors, maybe under \"state_dict\" or \"model\"" % path)
    return state


def main(args):
    if len(args) != 2 or args[0].endswith(".safetensors") == args[1].endswith(".safetensors"):
        sys.exit(__doc__)
    try:
        if args[0].endswith(".safetensors"):
            torch.save(load_file(args[0]), args[1])
        else:
            save_file(load_torch(args[0]), args[1])
    except (ValueError, OSError) as e:
        sys.exit("pytorch_safetensors.py: %s" % e)


if __name__ == "__main__":
    main(sys.argv[1:])
