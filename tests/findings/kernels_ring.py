"""Rings between two processes, which exchange keys and gradients over gloo.

The whole tensors go in and come out; each rank computes its share of the rows. The ranks are
programs of their own, this file with a folder and a rank, and take problem after problem. One that
does not answer in time is ended, and so is its neighbour: the next problem starts new ones.
"""

import atexit
import os
import pathlib
import select
import subprocess
import sys
import tempfile
import time

import numpy
import torch
from kernels_torch import call_ring_attention_pytorch, tensor, with_gradients

RANKS = 2
SECONDS = 300  # for one problem, and for the start of two interpreters
BUCKET = 16


class Ring:
    """Two processes that wait for work. `path`: a folder of packages that go before the others."""

    def __init__(self, path=""):
        self.folder = tempfile.TemporaryDirectory()
        search = [str(path), str(pathlib.Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, search)),
                                    "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        self.ranks = [subprocess.Popen([sys.executable, __file__, self.folder.name, str(rank)],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                       stderr=subprocess.DEVNULL, env=environment)
                      for rank in range(RANKS)]

    def answers(self, function, given):
        torch.save((function, given), f"{self.folder.name}/work")
        end = time.monotonic() + SECONDS
        for process in self.ranks:
            process.stdin.write("work\n")
            process.stdin.flush()
        for process in self.ranks:
            ready, _, _ = select.select([process.stdout], [], [], max(0, end - time.monotonic()))
            line = process.stdout.readline().strip() if ready else "no answer in time"
            if line != "done":
                raise RuntimeError(line or "a rank ended")
        return [torch.load(f"{self.folder.name}/answers{rank}", weights_only=False)
                for rank in range(RANKS)]

    def close(self):
        for process in self.ranks:
            process.kill()
            process.wait()
        self.folder.cleanup()


RINGS = {}


@atexit.register
def end_all():
    while RINGS:
        RINGS.popitem()[1].close()


def joined(function, given, places, path=""):
    """The answers of `function`, whose rank r computes the rows places[r] of all tensors."""
    shards = [{name: value[:, :, rows] if name in ("q", "k", "v", "dout") else value
               for name, value in given.items()} for rows in places]
    if path not in RINGS:
        RINGS[path] = Ring(path)
    try:
        parts = RINGS[path].answers(function, shards)
    except (OSError, RuntimeError):
        RINGS.pop(path).close()
        raise
    order = numpy.argsort(numpy.concatenate(places))
    return {name: torch.cat([part[name] for part in parts], dim=2)[:, :, order]
            for name in parts[0]}


def halves(rows, multiple):
    if rows % (multiple * RANKS):
        raise NotImplementedError(f"needs shards of whole {multiple}s")
    return numpy.split(numpy.arange(rows), RANKS)


def ring_attention_pytorch(given, path=""):
    places = halves(given["q"].shape[2], BUCKET)
    return joined("rank_of_ring_attention_pytorch", given, places, path)


def ring_attention_pytorch_striped(given):
    """Bucket b has the positions b, b + buckets, ..., as its own module deals them out."""
    if not given.get("causal"):
        raise NotImplementedError("stripes are for causal masks alone")
    rows = numpy.concatenate(halves(given["q"].shape[2], BUCKET))
    places = numpy.split(rows.reshape(BUCKET, -1).T.reshape(-1), RANKS)
    return joined("rank_of_ring_attention_pytorch", given | {"striped": True}, places)


def torch_template(given):
    """Whole halves one after the other; causal, a rank skips what none of its rows sees."""
    return joined("rank_of_torch_template", given, halves(given["q"].shape[2], 1))


def torch_template_balanced(given):
    """Each rank has one chunk of the beginning and one of the end, which needs a causal mask."""
    if not given.get("causal"):
        raise NotImplementedError("balances causal masks alone")
    rows = given["q"].shape[2]
    halves(rows, 2)
    # [balanced]
    chunks = numpy.arange(rows).reshape(2 * RANKS, -1)
    places = [numpy.concatenate([chunks[rank], chunks[2 * RANKS - 1 - rank]])
              for rank in range(RANKS)]
    # [/balanced]
    return joined("rank_of_torch_template", given | {"balanced": True}, places)


# What runs on each rank.

def rank_of_ring_attention_pytorch(given):
    return with_gradients(
        lambda q, k, v: call_ring_attention_pytorch(
            q, k, v, given, ring_reduce_col=True, ring_size=RANKS,
            striped_ring_attn=given.get("striped", False)), given)


def rank_of_torch_template(given):
    """PyTorch's context parallelism around its own kernel for processors: the template that the
    doors of context_parallel call with kernels for graphics cards."""
    from torch.distributed.tensor.experimental._context_parallel import _attention as parallel
    parallel._cp_options.enable_load_balance = given.get("balanced", False)
    kernels = torch.ops.aten
    q, k, v, dout = (tensor(given[name]) for name in ("q", "k", "v", "dout"))
    # [template]
    common = {"group": torch.distributed.group.WORLD, "seq_dim": 2, "query": q, "key": k,
              "value": v, "is_causal": given.get("causal", False), "dropout_p": 0.0,
              "scale": given["scale"]}
    out, lse = parallel._templated_ring_attention(
        op=kernels._scaled_dot_product_flash_attention_for_cpu, **common)[:2]
    gradients = parallel._templated_ring_attention_backward(
        op=kernels._scaled_dot_product_flash_attention_for_cpu_backward, grad_out=dout,
        grad_out_name="grad_out", out=out, logsumexp=lse, **common)[:3]
    # [/template]
    return {"out": out, "lse": lse} | dict(zip(("dq", "dk", "dv"), gradients))


def main(folder, rank):
    answer, sys.stdout = sys.stdout, sys.stderr  # nothing but answers there
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting",
                                         rank=rank, world_size=RANKS)
    for _ in sys.stdin:
        function, shards = torch.load(f"{folder}/work", weights_only=False)
        try:
            answers = globals()[function](shards[rank])
        except Exception as error:  # whatever a library raises: the other rank may now wait forever
            print(type(error).__name__, str(error).splitlines()[:1], file=answer, flush=True)
            return
        torch.save({name: one.detach() for name, one in answers.items()},
                   f"{folder}/answers{rank}")
        print("done", file=answer, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
