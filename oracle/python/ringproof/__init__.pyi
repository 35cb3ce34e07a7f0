"""Types of the public functions. Shapes and meanings are in the docstrings of `check` and others."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, TypedDict, overload

from typing_extensions import Unpack

from ._judge import Fit as Fit
from ._problem import Problem as Problem
from ._truth import Certified as Certified
from .audits import Audit as Audit
from .report import Explanation as Explanation, NotCertified as NotCertified, Report as Report
from .suite import SuiteResult

Array = Any  # of NumPy, ml_dtypes, PyTorch, JAX, or whatever has __dlpack__
Path = str | os.PathLike[str]
Contract = str | Mapping[str, Any] | None
Names = str | Iterable[str]

class _Ring(TypedDict):
    layout: Literal["contiguous", "zigzag", "striped"]
    order: Literal["down", "up"]

class _Problem(TypedDict, total=False):
    bias: Array  # broadcastable to [B, H, Nq, Nk]
    mask: Array  # the same
    alibi_slopes: Array  # [H] or [B, H]
    sinks: Array  # [H]
    key_lengths: Array  # [B]
    cu_seqlens_q: Array  # [S + 1]
    cu_seqlens_k: Array  # [S + 1]
    positions_q: Array  # [Nq] or [B, Nq]
    positions_k: Array  # [Nk] or [B, Nk]
    documents_q: Array  # [Nq]
    documents_k: Array  # [Nk]
    q_scale: Array  # 4 axes, each 1, full or a divisor
    k_scale: Array  # the same
    v_scale: Array  # the same
    dout: Array  # as out
    dlse: Array  # as lse
    layout: Literal["bhnd", "bnhd", "nhd"]
    scale: float
    causal: bool | Literal["none", "top_left", "bottom_right"]
    window: tuple[int, int]
    softcap: float
    empty_row: Literal["zero", "nan", "any"]
    lse_base: Literal["e", 2]
    ranks: int
    ring: _Ring

class _Answers(_Problem, total=False):
    out: Array  # [B, H, Nq, Dv]
    lse: Array  # [B, H, Nq]
    dq: Array  # as q
    dk: Array  # as k
    dv: Array  # as v
    dbias: Array  # as bias
    dsinks: Array  # as sinks

class _Check(_Answers, total=False):
    only: Names
    require: Names
    rows: int
    seed: int
    budget: float
    power: float
    probabilistic: bool
    precision: Literal["fast", "tight"] | int
    threads: int

class _Truth(_Problem, total=False):
    precision: Literal["fast", "tight"] | int
    threads: int

__version__: str

def check(q: Array | Path, k: Array = ..., v: Array = ..., *, contract: Contract = ...,
          name: str | None = ..., **arguments: Unpack[_Check]) -> Report: ...
def assert_certified(q: Array | Path, k: Array = ..., v: Array = ..., *,
                     contract: Contract = ..., name: str | None = ..., save: Path | None = ...,
                     **arguments: Unpack[_Check]) -> Report: ...
def explain(q: Array | Path, k: Array = ..., v: Array = ..., *, contract: Contract = ...,
            name: str | None = ..., **arguments: Unpack[_Check]) -> Report: ...
def fit(q: Array | Path, k: Array = ..., v: Array = ..., *, contract: Contract = ...,
        name: str | None = ..., **arguments: Unpack[_Check]) -> Fit: ...
def truth(q: Array | Path, k: Array = ..., v: Array = ..., *, dtype: Any = ...,
          name: str | None = ..., **arguments: Unpack[_Truth]) -> dict[str, Certified]: ...
def audit(rule: str | Mapping[str, Any], q: Array | Path | None = ..., k: Array = ...,
          v: Array = ..., *, contract: Contract = ..., sampled_rows: int = ..., forms: int = ...,
          threads: int | None = ..., seed: int = ..., name: str | None = ...,
          **arguments: Unpack[_Problem]) -> Audit: ...
@overload
def gen(suite: str = ..., folder: None = ..., *, seed: int = ...,
        threads: int | None = ...) -> Iterator[Problem]: ...
@overload
def gen(suite: str, folder: Path, *, seed: int = ..., threads: int | None = ...) -> list[str]: ...
def suite(kernel: Callable[[Problem], Any], contract: str | Mapping[str, Any], *,
          only: Names | None = ..., require: Names | None = ..., seed: int = ..., count: int = ...,
          promise: str = ..., timeout: float = ..., shrink: float = ..., failures: Path = ...,
          program: str | None = ...) -> SuiteResult: ...
def read(path: Path) -> Problem: ...
def write(path: Path, *, contract: Contract = ..., q: Array, k: Array, v: Array,
          **arguments: Unpack[_Answers]) -> None: ...
@overload
def contracts(contract: None = ...) -> list[str]: ...
@overload
def contracts(contract: str | Mapping[str, Any]) -> dict[str, Any]: ...
def contract_hash(contract: str) -> str: ...
