(* Two facts about exact numbers that the Gappa scripts of exp rest on.

   In words.
   1. ln2 / 64 lies between C1 + C2 + C3 and that plus 2^-128: three words are enough.
   2. For |r| <= 0.00543 the Taylor polynomial of degree 11 is within 2^-118 of exp(r). *)

Require Import Reals Lra.
From ringproof Require Import Sums IntegerInterval.
Import Enclosure.
Open Scope R_scope.

(* kLn2Over64 of oracle/truth/exp_table.hpp *)
Definition C1 : R := 0x1.62e42ffp-7.
Definition C2 : R := -0x1.718432a2p-41.
Definition C3 : R := 0x1.3c7673007e5edp-75.

Theorem ln2_in_three_words : 0 <= ln 2 / 64 - (C1 + C2 + C3) <= / 2 ^ 128.
Proof. unfold C1, C2, C3; interval with (i_prec 200). Qed.

(* E_0 of exp_polynomial.g, in the same nesting: its tail T_6 first. *)
Definition tail (r : R) : R :=
  ((((/ 39916800 * r + / 3628800) * r + / 362880) * r + / 40320) * r + / 5040) * r + / 720.
Definition taylor (r : R) : R :=
  r * (r * (r * (r * (r * (r * tail r + / 120) + / 24) + / 6) + / 2) + 1) + 1.

Theorem taylor_remainder r : Rabs r <= 543 / 100000 -> Rabs (exp r - taylor r) <= / 2 ^ 118.
Proof.
  intros small; apply Rabs_bounds in small.
  unfold taylor, tail; interval with (i_taylor r, i_degree 12, i_prec 180).
Qed.
