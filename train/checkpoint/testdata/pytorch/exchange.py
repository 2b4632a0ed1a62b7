#!/usr/bin/python3
"""PyTorch's side of the exchange of weights: the models and layers of exchange_test.go, their weights, and their outputs.

Usage: exchange.py write DIR [--full]     writes NAME.safetensors (state dict) and NAME.io.safetensors (inputs "in.…", outputs "out.…")
       exchange.py check DIR [--full]     loads DIR/NAME.safetensors with strict=True and compares with the outputs of NAME.io.safetensors
       exchange.py load NAME FILE …       loads state dicts with strict=True into the models of the sizes of --full
The files beside this script are those of "write". Without --full the models are narrow; the layers have one size.
Needs PyTorch (Debian's python3-torch).
"""
import math
import os
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

here = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(here, "..", "..", "..", "..", "scripts"))
from pytorch_safetensors import load_file, save_file  # noqa: E402

BOUND = 1e-5  # of an output, absolute and relative


def mlp(a=512, b=256):
    return nn.Sequential(nn.Flatten(), nn.Linear(784, a), nn.ReLU(), nn.Linear(a, b), nn.ReLU(), nn.Linear(b, 10))


def cnn(a=32, b=64, c=128):
    return nn.Sequential(nn.Conv2d(1, a, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(a, b, 3, padding=1), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(b * 49, c), nn.ReLU(), nn.Linear(c, 10))


def attend(q, k, v, mask):
    s = (q @ k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
    return s.masked_fill(mask, float("-inf")).softmax(-1) @ v


class GPT(nn.Module):
    """A decoder that keeps each kind of layer in a list of its own, and its mask in a buffer."""

    def __init__(self, d=128, t=64, vocab=65, heads=4, layers=4):
        super().__init__()
        self.h = heads
        self.tok, self.pos = nn.Embedding(vocab, d), nn.Embedding(t, d)
        self.ln1 = nn.ModuleList(nn.LayerNorm(d) for _ in range(layers))
        self.ln2 = nn.ModuleList(nn.LayerNorm(d) for _ in range(layers))
        self.qkv = nn.ModuleList(nn.Linear(d, 3 * d) for _ in range(layers))
        self.proj = nn.ModuleList(nn.Linear(d, d) for _ in range(layers))
        self.fc = nn.ModuleList(nn.Linear(d, 4 * d) for _ in range(layers))
        self.out = nn.ModuleList(nn.Linear(4 * d, d) for _ in range(layers))
        self.ln, self.head = nn.LayerNorm(d), nn.Linear(d, vocab)
        self.register_buffer("mask", torch.ones(t, t, dtype=torch.bool).triu(1))

    def forward(self, i):
        n, t = i.shape
        x = self.tok(i) + self.pos.weight[:t]
        for k in range(len(self.qkv)):
            q, key, v = (z.view(n, t, self.h, -1).transpose(1, 2) for z in self.qkv[k](self.ln1[k](x)).chunk(3, -1))
            x = x + self.proj[k](attend(q, key, v, self.mask[:t, :t]).transpose(1, 2).reshape(n, t, -1))
            x = x + self.out[k](F.gelu(self.fc[k](self.ln2[k](x)), approximate="tanh"))
        return self.head(self.ln(x))


class Decoder(nn.Module):
    """The names of nn.Decoder: a list of blocks, a head without bias."""

    def __init__(self, d=128, t=64, vocab=65, heads=4, layers=4):
        super().__init__()
        self.h = heads
        self.tok, self.pos = nn.Embedding(vocab, d), nn.Embedding(t, d)
        self.blocks = nn.ModuleList()
        for _ in range(layers):
            b = nn.Module()
            b.ln1, b.qkv, b.proj = nn.LayerNorm(d), nn.Linear(d, 3 * d), nn.Linear(d, d)
            b.ln2, b.fc, b.out = nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
            self.blocks.append(b)
        self.ln, self.head = nn.LayerNorm(d), nn.Linear(d, vocab, bias=False)

    def forward(self, i):
        n, t = i.shape
        x = self.tok(i) + self.pos.weight[:t]
        for b in self.blocks:
            q, k, v = (z.view(n, t, self.h, -1).transpose(1, 2) for z in b.qkv(b.ln1(x)).chunk(3, -1))
            x = x + b.proj(attend(q, k, v, torch.ones(t, t, dtype=torch.bool).triu(1)).transpose(1, 2).reshape(n, t, -1))
            x = x + b.out(F.gelu(b.fc(b.ln2(x)), approximate="tanh"))
        return self.head(self.ln(x))


def one(m, i):
    return {"y": m(i["x"])}


def batch_norm(m, i):
    """Evaluation, a batch of training, and the statistics after it."""
    m.eval()
    out = {"eval": m(i["x"])}
    m.train()
    out["train"] = m(i["x"])
    return dict(out, **{name: b.clone() for name, b in m.named_buffers()})


def spread(m):
    """Gives normalisations weights, biases and statistics that are not ones and zeros."""
    with torch.no_grad():
        for name, t in list(m.named_parameters()) + list(m.named_buffers()):
            if "running_var" in name:
                t.uniform_(0.5, 2)
            elif t.is_floating_point() and t.dim() == 1:
                t.add_(torch.randn_like(t) * 0.3)
    return m


def lstm(m, i):
    y, (h, c) = m(i["x"], (i["h"], i["c"]))
    return {"y": y, "h": h, "c": c}


def gru(m, i):
    y, h = m(i["x"], i["h"])
    return {"y": y, "h": h}


def mha(m, i):
    y, w = m(i["q"], i["k"], i["v"], key_padding_mask=i["padding"], attn_mask=i.get("mask"))
    return {"y": y, "weights": w}


def rand(**shapes):
    return lambda: {name: torch.randn(*shape) for name, shape in shapes.items()}


def with_padding(inputs, n, t, mask=None):
    def make():
        i = inputs()
        i["padding"] = torch.zeros(n, t, dtype=torch.bool)
        i["padding"][-1, -1] = True
        if mask:
            i["mask"] = torch.randn(*mask)
        return i
    return make


def encoder(m, i):
    return {"y": m(i["x"], src_key_padding_mask=i["padding"])}


images = rand(x=(4, 1, 28, 28))
tokens = lambda n, t: lambda: {"x": torch.randint(0, 65, (n, t))}
# name: narrow and full model, narrow and full inputs, call
CASES = {
    "mlp": (lambda: mlp(24, 16), mlp, images, images, one),
    "cnn": (lambda: cnn(4, 6, 12), cnn, images, images, one),
    "gpt": (lambda: GPT(16, 12, layers=2), GPT, tokens(2, 12), tokens(2, 64), one),
    "decoder": (lambda: Decoder(16, 12, layers=2), Decoder, tokens(2, 9), tokens(2, 50), one),
    "batch_norm": (lambda: spread(nn.BatchNorm2d(5)),) * 2 + (rand(x=(3, 5, 4, 2)),) * 2 + (batch_norm,),
    "lstm": (lambda: nn.LSTM(6, 5, 2, bidirectional=True, batch_first=True),) * 2 + (rand(x=(3, 7, 6), h=(4, 3, 5), c=(4, 3, 5)),) * 2 + (lstm,),
    "gru": (lambda: nn.GRU(6, 5, 2, bidirectional=True),) * 2 + (rand(x=(7, 3, 6), h=(4, 3, 5)),) * 2 + (gru,),
    "attention": (lambda: spread(nn.MultiheadAttention(8, 2)),) * 2 + (with_padding(rand(q=(4, 3, 8), k=(5, 3, 8), v=(5, 3, 8)), 3, 5, (4, 5)),) * 2 + (mha,),
    "attention_kv": (lambda: spread(nn.MultiheadAttention(8, 4, kdim=6, vdim=3, batch_first=True)),) * 2 +
                    (with_padding(rand(q=(3, 4, 8), k=(3, 5, 6), v=(3, 5, 3)), 3, 5),) * 2 + (mha,),
    "encoder_layer": (lambda: spread(nn.TransformerEncoderLayer(8, 2, 12)),) * 2 + (with_padding(rand(x=(5, 3, 8)), 3, 5),) * 2 + (encoder,),
    "encoder_layer_pre": (lambda: spread(nn.TransformerEncoderLayer(8, 2, 12, activation="gelu", batch_first=True, norm_first=True)),) * 2 +
                         (with_padding(rand(x=(3, 5, 8)), 3, 5),) * 2 + (encoder,),
    "conv_transpose": (lambda: spread(nn.Sequential(nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2), nn.GroupNorm(3, 6),
                                                    nn.Conv2d(6, 4, (3, 1), groups=2, dilation=2), nn.Flatten(2), nn.Conv1d(4, 3, 5, stride=2))),) * 2 +
                      (rand(x=(2, 4, 5, 6)),) * 2 + (one,),
}


def outputs(model, call, inputs):
    model.eval()  # as the test's layers; with gradients, so that PyTorch takes no path of its own for inference
    return {name: t.detach() for name, t in call(model, inputs).items()}


def write(folder, full):
    for seed, (name, case) in enumerate(CASES.items()):
        torch.manual_seed(seed)
        model, inputs, call = case[full](), case[2 + full](), case[4]
        save_file(model.state_dict(), os.path.join(folder, name + ".safetensors"))
        out = outputs(model, call, inputs)
        io = {"in." + k: t.contiguous() for k, t in inputs.items()}
        io.update({"out." + k: t.contiguous() for k, t in out.items()})
        save_file(io, os.path.join(folder, name + ".io.safetensors"))


def check(folder, full):
    failed = False
    for name, case in CASES.items():
        model, call = case[full](), case[4]
        model.load_state_dict(load_file(os.path.join(folder, name + ".safetensors")), strict=True)
        io = load_file(os.path.join(folder, name + ".io.safetensors"))
        got = outputs(model, call, {k[3:]: t for k, t in io.items() if k.startswith("in.")})
        for key, want in got.items():
            have = io["out." + key]
            worst = float(((have.double() - want.double()).abs() / (1 + want.double().abs())).max()) if have.shape == want.shape else math.nan
            good = worst <= BOUND
            failed |= not good
            print("%s %s: largest difference %.2g%s" % (name, key, worst, "" if good else ", bound %g: FAILED" % BOUND))
    sys.exit(1 if failed else 0)


def load(name, path):
    state = load_file(path)
    if name == "decoder":
        vocab, d = state["tok.weight"].shape
        model = Decoder(d, state["pos.weight"].shape[0], vocab)
    else:
        model = CASES[name][1]()
    print(model.load_state_dict(state, strict=True))


if __name__ == "__main__":
    torch.set_num_threads(1)
    args = [a for a in sys.argv[1:] if a != "--full"]
    if args[:1] in (["write"], ["check"]) and len(args) == 2:
        {"write": write, "check": check}[args[0]](args[1], int("--full" in sys.argv))
    elif args[:1] == ["load"] and len(args) > 2 and len(args) % 2 == 1:
        for name, path in zip(args[1::2], args[2::2]):
            load(name, path)
    else:
        sys.exit(__doc__)
