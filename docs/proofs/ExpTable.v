(* The table of exp (oracle/truth/exp_table.cpp): what its entries are good for.

   In words.  Let T lie between 1 and 2, like 2^(i/64), and let t be so close to it, |t - T| <=
   2^-150, as the midpoint of a narrow enclosure is.  With th = RN(t) and tl = RN(t - th)

     1 <= th <= 2,   |tl| <= 2^-53,   |th + tl - T| <= 2^-106,

   which is what exp_polynomial.g assumes.  So the entries need no proof one by one. *)

Require Import Reals Lra Lia ZArith.
From Flocq Require Import Core.
From ringproof Require Import Sums ErrorFree.
Open Scope R_scope.

(* What a binary64 number of [1, 2] loses is at most 2^-53, and that itself rounds to 2^-107. *)
Theorem table_entry T t : 1 <= t <= 2 -> Rabs (t - T) <= / 2 ^ 150 ->
  let th := RN t in let tl := RN (t - th) in
  1 <= th <= 2 /\ Rabs tl <= power (-53) /\ Rabs (th + tl - T) <= power (-106).
Proof.
  intros range near th tl.
  assert (B1 : binary64 1) by (change 1 with (power 0); apply power_binary64; lia).
  assert (B2 : binary64 2) by (change 2 with (power 1); apply power_binary64; lia).
  assert (lost : Rabs (t - th) <= power (-53)).
  { rewrite <- Rabs_Ropp, Ropp_minus_distr; apply (RN_error t 1); [lia|].
    change (power 1) with 2; rewrite Rabs_right; lra. }
  assert (lost' : Rabs (tl - (t - th)) <= power (-107)) by (apply (RN_error _ (-53));
      [lia | exact lost]).
  repeat split.
  - rewrite <- (RN_exact 1 B1); apply RN_le; lra.
  - rewrite <- (RN_exact 2 B2); apply RN_le; lra.
  - apply RN_abs_le; [apply power_binary64; lia | exact lost].
  - replace (th + tl - T) with ((tl - (t - th)) + (t - T)) by ring.
    replace (power (-106)) with (power (-107) + power (-107)) by (simpl; lra).
    apply Rabs_plus_le; [exact lost' | eapply Rle_trans; [exact near | simpl; lra]].
Qed.

(* The entries are such numbers: 2^(i/64) lies in [1, 2]. *)
Theorem table_range i : (0 <= i < 64)%Z -> 1 <= exp (IZR i * (ln 2 / 64)) <= 2.
Proof.
  intros (low%IZR_le & high%IZR_lt); pose proof ln_lt_2.
  rewrite <- exp_0 at 1; rewrite <- (exp_ln 2) at 3 by lra; split; apply exp_le; nra.
Qed.
