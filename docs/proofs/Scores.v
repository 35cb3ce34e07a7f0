(* The error eps_j of a computed score, (4) to (6) of the contract.

   In words.
   (4) The dot product carries a factor e^theta_t, |theta_t| <= G, on every product x_t, and an
   absolute
       error; scale and stores multiply by e^nu, |nu| <= S, and add absolute errors.
   (5) softcap: cap tanh(. / cap) is 1-Lipschitz, so an error before it is not enlarged; the
   division
       and the computed tanh add theirs.
   (6) Two more terms may be added, in any order: every order has at most one intermediate sum, and
       that is one of s + b, s + b', b + b'. *)

Require Import Reals Lra List.
From Coquelicot Require Import Rcomplements Hierarchy Continuity Derive AutoDerive.
From ringproof Require Import Sums.
Import ListNotations.
Open Scope R_scope.

(* ---------- (4) ---------- *)

Section DotProduct.

Context {Term : Type} (terms : list Term).
Variables (x theta : Term -> R) (scale e nu f : R) (G S e_max f_max : R).
Hypothesis theta_small : forall t, In t terms -> Rabs (theta t) <= G.
Hypothesis nu_small : Rabs nu <= S.
Hypothesis e_small : Rabs e <= e_max.                (* absolute, before the last factors *)
Hypothesis f_small : Rabs f <= f_max.                (* absolute, of the stores *)

Definition score : R := scale * sum x terms.
Definition magnitude : R := Rabs scale * sum (fun t => Rabs (x t)) terms.
Definition score_computed : R :=
  (scale * sum (fun t => x t * exp (theta t)) terms + e) * exp nu + f.

Theorem score_error : Rabs (score_computed - score) <=
  exp S * (expm1 G * magnitude + e_max) + expm1 S * Rabs score + f_max.
Proof.
  unfold score_computed, score.
  replace (_ - _) with
    (exp nu * (scale * sum (fun t => x t * expm1 (theta t)) terms + e)
     + expm1 nu * (scale * sum x terms) + f).
  - apply Rabs_plus_le; [apply Rabs_plus_le; apply Rabs_mult_le | exact f_small];
      auto using Rabs_exp_le, Rabs_expm1_le, Rle_refl.
    apply Rabs_plus_le; [|exact e_small]; unfold magnitude.
    replace (expm1 G * (Rabs scale * sum (fun t => Rabs (x t)) terms)) with
      (Rabs scale * (expm1 G * sum (fun t => Rabs (x t)) terms)) by ring.
    apply Rabs_mult_le; [apply Rle_refl|]; rewrite <- sum_scale; apply sum_abs_le; intros t i.
    rewrite Rmult_comm; apply Rabs_mult_le; [apply Rabs_expm1_le; auto | apply Rle_refl].
  - assert (E : sum (fun t => x t * exp (theta t)) terms
                = sum (fun t => x t * expm1 (theta t)) terms + sum x terms)
      by (rewrite <- sum_plus; apply sum_eq; intros; unfold expm1; ring).
    rewrite E; unfold expm1; ring.
Qed.

End DotProduct.

(* ---------- (5) ---------- *)

Lemma tanh_derive x : is_derive tanh x (1 - tanh x ^ 2).
Proof.
  pose proof (exp_pos x); pose proof (exp_pos (- x)); unfold tanh, sinh, cosh.
  auto_derive; [lra|]; field; lra.
Qed.

Theorem tanh_lipschitz x y : Rabs (tanh x - tanh y) <= Rabs (x - y).
Proof.
  destruct (MVT_gen tanh y x (fun t => 1 - tanh t ^ 2)) as (t & _ & E).
  - intros; apply tanh_derive.
  - intros t _; apply continuity_pt_filterlim, (ex_derive_continuous tanh).
    eexists; apply tanh_derive.
  - rewrite E, Rabs_mult; apply Rle_trans with (1 * Rabs (x - y)); [|lra].
    apply Rmult_le_compat_r; [apply Rabs_pos|]; apply Rabs_le.
    assert (below : Rabs (tanh t) <= 1).
    { pose proof (exp_pos t); pose proof (exp_pos (- t)); unfold tanh, sinh, cosh.
      apply Rabs_le; split; [apply (Rmult_le_reg_r ((exp t + exp (- t)) / 2)) |
        apply (Rmult_le_reg_r ((exp t + exp (- t)) / 2))]; try lra; field_simplify; lra. }
    apply Rabs_bounds in below; nra.
Qed.

Definition capped (cap x : R) : R := cap * tanh (x / cap).

Theorem softcap_lipschitz cap x y : 0 < cap -> Rabs (capped cap x - capped cap y) <= Rabs (x - y).
Proof.
  intros P; unfold capped; rewrite <- Rmult_minus_distr_l, Rabs_mult, (Rabs_right cap) by lra.
  replace (Rabs (x - y)) with (cap * Rabs (x / cap - y / cap)).
  - apply Rmult_le_compat_l; [lra | apply tanh_lipschitz].
  - rewrite <- (Rabs_right cap) at 1 by lra; rewrite <- Rabs_mult; f_equal; field; lra.
Qed.

(* x^ is within eps of x; its division by cap has a factor e^c and, times cap, an absolute error a;
   tanh has a factor e^t and an absolute error b. *)
Theorem softcap_error cap x xh c a t b eps C a_max T b_max : 0 < cap ->
  Rabs (xh - x) <= eps -> Rabs c <= C -> Rabs a <= a_max -> Rabs t <= T -> Rabs b <= b_max ->
  Rabs (cap * (tanh ((xh * exp c + a) / cap) * exp t + b) - capped cap x)
  <= exp T * (eps + expm1 C * (Rabs x + eps) + a_max) + cap * b_max
     + expm1 T * Rabs (capped cap x).
Proof.
  intros P near Hc Ha Ht Hb; set (y := xh * exp c + a).
  assert (size : Rabs xh <= Rabs x + eps).
  { replace xh with (x + (xh - x)) by ring; apply Rabs_plus_le; [apply Rle_refl | exact near]. }
  assert (before : Rabs (y - x) <= eps + expm1 C * (Rabs x + eps) + a_max).
  { replace (y - x) with ((xh - x) + expm1 c * xh + a) by (unfold y, expm1; ring).
    apply Rabs_plus_le; [apply Rabs_plus_le|]; trivial.
    apply Rabs_mult_le; [now apply Rabs_expm1_le | exact size]. }
  replace (cap * (tanh (y / cap) * exp t + b) - capped cap x) with
    (exp t * (capped cap y - capped cap x) + cap * b + expm1 t * capped cap x)
    by (unfold capped, expm1; ring).
  apply Rabs_plus_le; [apply Rabs_plus_le|]; apply Rabs_mult_le;
    auto using Rabs_exp_le, Rabs_expm1_le, Rle_refl.
  - eapply Rle_trans; [apply softcap_lipschitz, P | exact before].
  - rewrite Rabs_right; lra.
Qed.

(* ---------- (6) ---------- *)

(* One addition of exact s and b, computed from values near them. *)
Lemma addition_error s b sh bh t f eps eps' tb et :
  Rabs (sh - s) <= eps -> Rabs (bh - b) <= eps' -> Rabs t <= tb -> Rabs f <= et ->
  Rabs ((sh + bh) * exp t + f - (s + b)) <= eps + eps' + expm1 tb * (Rabs (s + b) + (eps + eps'))
      + et.
Proof.
  intros Hs Hb Ht Hf.
  replace ((sh + bh) * exp t + f - (s + b)) with
    ((sh - s) + (bh - b) + expm1 t * ((s + b) + ((sh - s) + (bh - b))) + f) by (unfold expm1; ring).
  apply Rabs_plus_le; [apply Rabs_plus_le; [apply Rabs_plus_le|]|]; trivial.
  apply Rabs_mult_le; [now apply Rabs_expm1_le|]; apply Rabs_plus_le; [apply Rle_refl|].
  apply Rabs_plus_le; assumption.
Qed.

(* One more term. *)
Theorem bias_error s b sh bh t f eps N tb et :
  Rabs (sh - s) <= eps -> Rabs (bh - b) <= expm1 N * Rabs b -> Rabs t <= tb -> Rabs f <= et ->
  let eps1 := eps + expm1 N * Rabs b in
  Rabs ((sh + bh) * exp t + f - (s + b)) <= eps1 + expm1 tb * (Rabs (s + b) + eps1) + et.
Proof. intros; apply addition_error; assumption. Qed.

(* Two more terms x2, x3 to x1, the first two of which are added first; the caller names them. *)
Theorem two_additions_error x1 x2 x3 y1 y2 y3 t f t' f' e1 e2 e3 tb et top :
  Rabs (y1 - x1) <= e1 -> Rabs (y2 - x2) <= e2 -> Rabs (y3 - x3) <= e3 ->
  Rabs t <= tb -> Rabs f <= et -> Rabs t' <= tb -> Rabs f' <= et -> Rabs (x1 + x2) <= top -> 0 <=
      e3 ->
  let before := e1 + e2 + e3 in
  let eps := before + expm1 tb * (top + before) + et in
  Rabs (((y1 + y2) * exp t + f + y3) * exp t' + f' - (x1 + x2 + x3))
  <= eps + expm1 tb * (Rabs (x1 + x2 + x3) + eps) + et.
Proof.
  intros H1 H2 H3 Ht Hf Ht' Hf' Htop P3 before eps.
  assert (P : 0 <= expm1 tb) by (apply expm1_nonneg; pose proof (Rabs_pos t); lra).
  pose proof (addition_error x1 x2 y1 y2 t f e1 e2 tb et H1 H2 Ht Hf) as first.
  pose proof (addition_error (x1 + x2) x3 ((y1 + y2) * exp t + f) y3 t' f' _ e3 tb et first H3 Ht'
      Hf')
    as second.
  eapply Rle_trans; [exact second|];
      set (one := e1 + e2 + expm1 tb * (Rabs (x1 + x2) + (e1 + e2)) + et) in *.
  assert (le : one + e3 <= eps).
  { unfold one, eps, before.
    assert (expm1 tb * (Rabs (x1 + x2) + (e1 + e2)) <= expm1 tb * (top + (e1 + e2 + e3)))
      by (apply Rmult_le_compat_l; lra); lra. }
  assert (expm1 tb * (Rabs (x1 + x2 + x3) + (one + e3)) <= expm1 tb * (Rabs (x1 + x2 + x3) + eps))
    by (apply Rmult_le_compat_l; lra); lra.
Qed.
