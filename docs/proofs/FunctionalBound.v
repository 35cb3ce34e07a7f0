(* Theorem T1F of the contract: the bound (26) of a weighted sum of output elements of one row.

   In words.  One row, columns x with weights g_x.  The errors c_j, b_j, h and the cast error a_j of
   P are the same for all columns; what the accumulation adds, r_jx, may differ, as may the absolute
   errors n_x, pt_x, z_x and the last factor e^{t_x} (division and output rounding):

     q_x = (sum_j w_j e^{c_j + a_j + r_jx} v_jx + n_x + W pt_x) / (sum_j w_j e^{c_j + b_j} + h)
     out_x = q_x e^{t_x} + z_x.

   With the virtual column y_j = sum_x g_x v_jx, y = sum_j p_j y_j = sum_x g_x o_x,
   ay_j = sum_x |g_x v_jx|, S1 = sum_x |g_x o_x|, N = sum_x |g_x| (N_x / W + Pt_x), and D as in
   (21):

     | sum_x g_x (out_x - o_x) | <=
         { sum p [expm1(C) |y_j - y| + e^C (expm1(A) |y_j| + e^A expm1(R) ay_j + expm1(B) |y|)]
           + (H / W) |y| + N } / D  +  expm1(T) S_O  +  sum_x |g_x| Z_x
           (26)
     S_O = S1 + { sum p [expm1(C) (ay_j + S1) + e^C (expm1(A + R) ay_j + expm1(B) S1)]
                  + (H / W) S1 + N } / D

   S_O bounds sum_x |g_x q_x|.  Its terms in H and N must not be left out: the last factor
   multiplies what underflow has left in q_x, too. *)

Require Import Reals Lra List.
From ringproof Require Import Sums OutputBound.
Import ListNotations.
Open Scope R_scope.

Section Row.

Context {Key Column : Type} (keys : list Key) (columns : list Column).
Variables (w : Key -> R) (v : Column -> Key -> R) (g : Column -> R).

(* The errors of column x: those it shares with the others, and its own. *)
Variables (c a b : Key -> R) (h : R).
Variables (r : Column -> Key -> R) (n pt t z : Column -> R).
Definition errors_of (x : Column) : errors :=
  Errors c (fun k => a k + r x k) b (n x) h (pt x) (t x) (z x).

(* Their bounds. *)
Variables (C A B Rest : Key -> R) (H T : R) (N Pt Z : Column -> R).
Definition bounds_of (x : Column) : errors :=
  Errors C (fun k => A k + Rest k) B (N x) H (Pt x) T (Z x).

Hypothesis some_key : keys <> [].
Hypothesis w_positive : forall k, In k keys -> 0 < w k.
Hypothesis a_small : forall k, In k keys -> Rabs (a k) <= A k.
Hypothesis r_small : forall x k, In x columns -> In k keys -> Rabs (r x k) <= Rest k.
Hypothesis all_within : forall x, In x columns -> within keys (errors_of x) (bounds_of x).
Hypothesis some_column : columns <> [].

Notation W := (W keys w).
Notation p := (p keys w).
Notation D := (D keys w (Errors C A B 0 H 0 0 0)).
Hypothesis D_positive : 0 < D.

(* ---------- the virtual column ---------- *)

Definition o_of (x : Column) : R := o keys w (v x).
Definition y (k : Key) : R := sum (fun x => g x * v x k) columns.
Definition ay (k : Key) : R := sum (fun x => Rabs (g x) * Rabs (v x k)) columns.
Definition y_exact : R := sum (fun x => g x * o_of x) columns.
Definition S1 : R := sum (fun x => Rabs (g x) * Rabs (o_of x)) columns.
Definition absolute : R := sum (fun x => Rabs (g x) * (N x / W + Pt x)) columns.

Theorem virtual_column : y_exact = o keys w y.
Proof.
  unfold y_exact, o_of, o; rewrite (sum_eq _ (fun x => sum (fun k => g x * (p k * v x k)) keys))
    by (intros; now rewrite sum_scale).
  rewrite <- (sum_swap (fun k x => g x * (p k * v x k))); apply sum_eq; intros k _; unfold y.
  rewrite <- sum_scale; apply sum_eq; intros; ring.
Qed.

(* ---------- the quotients ---------- *)

Definition quotient (x : Column) : R :=
  numerator keys w (v x) (errors_of x) / denominator keys w (errors_of x).
Definition out (x : Column) : R := o_hat keys w (v x) (errors_of x).

(* All columns have the same denominator. *)
Definition below : R := sum (fun k => w k * exp (c k + b k)) keys + h.

Lemma W_pos : 0 < W.
Proof. apply W_positive; assumption. Qed.

Lemma below_large : W * D <= below.
Proof.
  destruct columns as [|x rest]; [congruence|].
  apply (denominator_large keys w some_key w_positive (errors_of x) (bounds_of x)).
  apply all_within; left; reflexivity.
Qed.

Lemma WD_positive : 0 < W * D.
Proof. apply Rmult_lt_0_compat; auto using W_pos. Qed.

Definition functional_bound : R :=
  (sum (fun k => p k * (expm1 (C k) * Rabs (y k - y_exact))) keys
   + sum (fun k => p k * (exp (C k) * (expm1 (A k) * Rabs (y k)
       + exp (A k) * (expm1 (Rest k) * ay k) + expm1 (B k) * Rabs y_exact))) keys
   + H / W * Rabs y_exact + absolute) / D.

(* The residuals of OutputBound.v, summed over the columns. *)
Lemma sum_of_residuals :
  sum (fun x => g x * (numerator keys w (v x) (errors_of x) - o_of x * below)) columns
  = sum (fun k => w k * (expm1 (c k) * (y k - y_exact))) keys
    + sum (fun k => w k * (exp (c k) * (expm1 (a k) * y k
        + exp (a k) * sum (fun x => g x * (expm1 (r x k) * v x k)) columns
        - expm1 (b k) * y_exact))) keys
    - h * y_exact + sum (fun x => g x * (n x + W * pt x)) columns.
Proof.
  rewrite (sum_eq _ (fun x =>
    sum (fun k => g x * (w k * (expm1 (c k) * (v x k - o_of x)))) keys
    + (sum (fun k => g x * (w k * (exp (c k) * (expm1 (a k + r x k) * v x k
         - expm1 (b k) * o_of x)))) keys
    + (- h * (g x * o_of x) + g x * (n x + W * pt x))))).
  2: { intros x _; unfold o_of.
       pose proof (residual keys w (v x) some_key w_positive (errors_of x)) as E.
       change (denominator keys w (errors_of x)) with below in E; rewrite E.
       cbn [OutputBound.c OutputBound.a OutputBound.b OutputBound.g OutputBound.h OutputBound.pt
            errors_of]; rewrite !sum_scale; ring. }
  rewrite !sum_plus, sum_scale; fold y_exact.
  rewrite <- (sum_swap (fun k x => g x * (w k * (expm1 (c k) * (v x k - o_of x))))).
  rewrite <- (sum_swap (fun k x => g x * (w k * (exp (c k) * (expm1 (a k + r x k) * v x k
                                   - expm1 (b k) * o_of x))))).
  assert (first : forall k, sum (fun x => g x * (w k * (expm1 (c k) * (v x k - o_of x)))) columns
                            = w k * (expm1 (c k) * (y k - y_exact))).
  { intros k; rewrite (sum_eq _ (fun x => w k * expm1 (c k) * (g x * v x k)
      + - (w k * expm1 (c k)) * (g x * o_of x))) by (intros; ring).
    rewrite sum_plus, !sum_scale; fold (y k) y_exact; ring. }
  assert (second : forall k, sum (fun x => g x * (w k * (exp (c k) * (expm1 (a k + r x k) * v x k
      - expm1 (b k) * o_of x)))) columns
    = w k * (exp (c k) * (expm1 (a k) * y k
        + exp (a k) * sum (fun x => g x * (expm1 (r x k) * v x k)) columns
        - expm1 (b k) * y_exact))).
  { intros k; rewrite (sum_eq _ (fun x => w k * exp (c k) * expm1 (a k) * (g x * v x k)
      + (w k * exp (c k) * exp (a k) * (g x * (expm1 (r x k) * v x k))
         + - (w k * exp (c k) * expm1 (b k)) * (g x * o_of x))))
      by (intros; rewrite expm1_plus; ring).
    rewrite !sum_plus, !sum_scale; fold (y k) y_exact; ring. }
  rewrite (sum_eq _ _ keys (fun k _ => first k)), (sum_eq _ _ keys (fun k _ => second k)); ring.
Qed.

Lemma shared_within x k : In x columns -> In k keys ->
  Rabs (c k) <= C k /\ Rabs (b k) <= B k /\ Rabs h <= H.
Proof.
  intros ix ik; destruct (all_within x ix) as (per_key & _ & small & _).
  destruct (per_key k ik) as (? & _ & ?); easy.
Qed.

Theorem quotients_bound :
  Rabs (sum (fun x => g x * (quotient x - o_of x)) columns) <= functional_bound.
Proof.
  pose proof W_pos; pose proof WD_positive; pose proof below_large.
  replace (sum (fun x => g x * (quotient x - o_of x)) columns) with
    (sum (fun x => g x * (numerator keys w (v x) (errors_of x) - o_of x * below)) columns / below).
  2: { unfold Rdiv; rewrite Rmult_comm, <- sum_scale; apply sum_eq; intros x _; unfold quotient.
       change (denominator keys w (errors_of x)) with below; field; lra. }
  unfold functional_bound; set (top := _ + absolute).
  replace (top / D) with (W * top / (W * D)) by (field; lra).
  apply Rabs_div_le; try assumption; rewrite sum_of_residuals; unfold top.
  assert (H_small : Rabs h <= H).
  { destruct columns as [|x rest]; [congruence|].
    destruct (all_within x (or_introl eq_refl)) as (_ & _ & small & _); exact small. }
  rewrite !Rmult_plus_distr_l, !(W_times keys w some_key w_positive).
  apply Rabs_plus_le; [apply Rabs_minus_le; [apply Rabs_plus_le|]|].
  - apply sum_abs_le; intros k i; pose proof (w_positive k i).
    destruct columns as [|x rest] eqn:Ec; [congruence|]; rewrite <- Ec in *.
    destruct (shared_within x k) as (Hc & _); [rewrite Ec; left; easy | exact i |].
    apply Rabs_mult_le; [rewrite Rabs_right; lra|].
    apply Rabs_mult_le; [now apply Rabs_expm1_le | apply Rle_refl].
  - apply sum_abs_le; intros k i; pose proof (w_positive k i).
    destruct columns as [|x rest] eqn:Ec; [congruence|]; rewrite <- Ec in *.
    destruct (shared_within x k) as (Hc & Hb & _); [rewrite Ec; left; easy | exact i |].
    apply Rabs_mult_le; [rewrite Rabs_right; lra | apply Rabs_mult_le; [now apply Rabs_exp_le|]].
    apply Rabs_minus_le; [apply Rabs_plus_le|]; apply Rabs_mult_le; try apply Rle_refl;
      try (apply Rabs_expm1_le || apply Rabs_exp_le); auto.
    unfold ay; rewrite <- sum_scale; apply sum_abs_le; intros x' ix'.
    rewrite !Rabs_mult; replace (expm1 (Rest k) * (Rabs (g x') * Rabs (v x' k)))
      with (Rabs (g x') * (expm1 (Rest k) * Rabs (v x' k))) by ring.
    apply Rmult_le_compat_l; [apply Rabs_pos | apply Rmult_le_compat_r; [apply Rabs_pos|]].
    apply Rabs_expm1_le; auto.
  - replace (W * (H / W * Rabs y_exact)) with (H * Rabs y_exact) by (field; lra).
    apply Rabs_mult_le; [assumption | apply Rle_refl].
  - unfold absolute; rewrite <- sum_scale; apply sum_abs_le; intros x ix.
    destruct (all_within x ix) as (_ & small_n & _ & small_pt & _).
    replace (W * (Rabs (g x) * (N x / W + Pt x))) with (Rabs (g x) * (N x + W * Pt x)) by (field;
        lra).
    rewrite Rabs_mult; apply Rmult_le_compat_l; [apply Rabs_pos|]; apply Rabs_plus_le;
        [exact small_n|].
    apply Rabs_mult_le; [rewrite Rabs_right; lra | exact small_pt].
Qed.

(* ---------- the sizes of the quotients, and the last factor ---------- *)

Definition S_O : R := S1
  + (sum (fun k => p k * (expm1 (C k) * (ay k + S1))) keys
     + sum (fun k => p k * (exp (C k) * (expm1 (A k + Rest k) * ay k + expm1 (B k) * S1))) keys
     + H / W * S1 + absolute) / D.

Lemma one_quotient x : In x columns ->
  Rabs (quotient x - o_of x) <= e0 keys w (v x) (bounds_of x).
Proof.
  intros ix; unfold quotient, o_of.
  apply (quotient_bound keys w (v x) some_key w_positive (errors_of x) (bounds_of x)); auto.
Qed.


Lemma C_nonneg k : In k keys -> 0 <= C k.
Proof.
  intros ik; destruct columns as [|x rest]; [congruence|].
  destruct (all_within x (or_introl eq_refl)) as (per_key & _); destruct (per_key k ik) as (? & _).
  eapply Rle_trans; [apply Rabs_pos | eassumption].
Qed.

Lemma quotients_small : sum (fun x => Rabs (g x) * Rabs (quotient x)) columns <= S_O.
Proof.
  pose proof W_pos as PW.
  apply Rle_trans with
    (sum (fun x => Rabs (g x) * Rabs (o_of x) + Rabs (g x) * e0 keys w (v x) (bounds_of x))
        columns).
  - apply sum_le; intros x ix; rewrite <- Rmult_plus_distr_l.
    apply Rmult_le_compat_l; [apply Rabs_pos|].
    replace (quotient x) with (o_of x + (quotient x - o_of x)) by ring.
    apply Rabs_plus_le; [apply Rle_refl | apply one_quotient, ix].
  - rewrite sum_plus; unfold S_O; fold S1; apply Rplus_le_compat_l.
    unfold Rdiv; rewrite (Rmult_comm _ (/ D)); apply Rle_trans with
      (/ D * sum (fun x => sum (fun k => Rabs (g x) * (p k * (expm1 (C k) * Rabs (v x k - o_of
          x)))) keys
         + (sum (fun k => Rabs (g x) * (p k * (exp (C k) * (expm1 (A k + Rest k) * Rabs (v x k)
             + expm1 (B k) * Rabs (o_of x))))) keys
         + (H / W * (Rabs (g x) * Rabs (o_of x)) + Rabs (g x) * (N x / W + Pt x)))) columns).
    + rewrite <- sum_scale; apply Req_le, sum_eq; intros x _; unfold e0.
      change (OutputBound.D keys w (bounds_of x)) with D; fold (o_of x).
      cbn [OutputBound.c OutputBound.a OutputBound.b OutputBound.g OutputBound.h OutputBound.pt
           bounds_of]; rewrite !sum_scale; unfold Rdiv; ring.
    + apply Rmult_le_compat_l; [left; apply Rinv_0_lt_compat, D_positive|].
      rewrite !sum_plus, sum_scale; fold S1 absolute.
      rewrite <- (sum_swap (fun k x => Rabs (g x) * (p k * (expm1 (C k) * Rabs (v x k - o_of x))))).
      rewrite <- (sum_swap (fun k x => Rabs (g x) * (p k * (exp (C k) * (expm1 (A k + Rest k)
        * Rabs (v x k) + expm1 (B k) * Rabs (o_of x)))))).
      rewrite !Rplus_assoc; apply Rplus_le_compat; [|apply Rplus_le_compat; [apply Req_le|lra]].
      * apply sum_le; intros k ik; pose proof (p_positive keys w some_key w_positive k ik).
        pose proof (expm1_nonneg (C k) (C_nonneg k ik)).
        rewrite (sum_eq _ (fun x => p k * expm1 (C k) * (Rabs (g x) * Rabs (v x k - o_of x))))
          by (intros; ring).
        rewrite sum_scale, <- Rmult_assoc; apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|].
        unfold ay, S1; rewrite <- sum_plus; apply sum_le; intros x _; rewrite <- Rmult_plus_distr_l.
        apply Rmult_le_compat_l; [apply Rabs_pos | apply Rabs_minus_le; apply Rle_refl].
      * apply sum_eq; intros k _.
        rewrite (sum_eq _ (fun x => p k * exp (C k) * expm1 (A k + Rest k) * (Rabs (g x) * Rabs (v
            x k))
          + p k * exp (C k) * expm1 (B k) * (Rabs (g x) * Rabs (o_of x)))) by (intros; ring).
        rewrite sum_plus, !sum_scale; fold (ay k) S1; ring.
Qed.

(* (26) *)
Theorem functional_error : Rabs (sum (fun x => g x * (out x - o_of x)) columns)
  <= functional_bound + expm1 T * S_O + sum (fun x => Rabs (g x) * Z x) columns.
Proof.
  rewrite (sum_eq _ (fun x => g x * (quotient x - o_of x)
    + (g x * (quotient x * expm1 (t x)) + g x * z x))).
  2: { intros x _; unfold out, o_hat, quotient, expm1.
       cbn [OutputBound.t OutputBound.g2 errors_of]; ring. }
  rewrite !sum_plus, <- Rplus_assoc; apply Rabs_plus_le; [apply Rabs_plus_le|].
  - apply quotients_bound.
  - eapply Rle_trans; [|apply Rmult_le_compat_l; [|apply quotients_small]].
    + rewrite <- sum_scale; apply sum_abs_le; intros x ix; rewrite !Rabs_mult.
      destruct (all_within x ix) as (_ & _ & _ & _ & small & _).
      replace (expm1 T * (Rabs (g x) * Rabs (quotient x)))
        with (Rabs (g x) * (Rabs (quotient x) * expm1 T)) by ring.
      apply Rmult_le_compat_l; [apply Rabs_pos | apply Rmult_le_compat_l; [apply Rabs_pos|]].
      apply Rabs_expm1_le, small.
    + destruct columns as [|x rest]; [congruence|].
      destruct (all_within x (or_introl eq_refl)) as (_ & _ & _ & _ & small & _).
      apply expm1_nonneg; eapply Rle_trans; [apply Rabs_pos | exact small].
  - apply sum_abs_le; intros x ix; destruct (all_within x ix) as (_ & _ & _ & _ & _ & small).
    rewrite Rabs_mult; apply Rmult_le_compat_l; [apply Rabs_pos | exact small].
Qed.

End Row.

(* ---------- not vacuous, and the terms that formula (26) must not lose ---------- *)

(* One key, one column, value 0, weight 1: without other errors an absolute error n of the numerator
   and a last factor e^t give the answer n e^t, and the bound is exactly that. *)
Theorem absolute_errors_are_multiplied (n t : R) : 0 < n -> 0 < t ->
  let keys := [tt] in let columns := [tt] in
  let one := fun _ : unit => 1 in let zero := fun _ : unit => 0 in let zeros := fun _ _ : unit =>
      0 in
  let error := sum (fun x => 1 * (out keys one zeros zero zero zero 0 zeros (fun _ => n) zero
                 (fun _ => t) zero x - o_of keys one zeros x)) columns in
  let bound := functional_bound keys columns one zeros one zero zero zero zero 0 (fun _ => n) zero
    + expm1 t * S_O keys columns one zeros one zero zero zero zero 0 (fun _ => n) zero in
  error = bound /\ error = n * exp t /\ n < error.
Proof.
  intros; unfold error, bound, functional_bound, S_O, S1, absolute, out, o_of, y, ay, y_exact,
      o_hat,
    numerator, denominator, D, o, p, W, keys, columns, one, zero, zeros, errors_of; cbn.
  unfold o_of, o, p, W, Rdiv; cbn.
  repeat (rewrite Rplus_0_l || rewrite Rplus_0_r || rewrite Rminus_0_r || rewrite Ropp_0
    || rewrite Rmult_0_l || rewrite Rmult_0_r || rewrite Rmult_1_l || rewrite Rmult_1_r
    || rewrite Rinv_1 || rewrite Rabs_R0 || rewrite Rabs_R1 || rewrite expm1_0 || rewrite exp_0).
  pose proof (exp_increasing 0 t) as grows; rewrite exp_0 in grows; unfold expm1.
  repeat split; [ring | nra].
Qed.
