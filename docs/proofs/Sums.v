(* Finite sums over a list of keys, and e^x - 1: what the other files have in common.

   The elements may be of any type: a key is whatever the caller says it is, and its score, value
   and errors are functions of it.  Nothing here is about attention. *)

Require Import Reals Lra List Permutation.
Import ListNotations.
Open Scope R_scope.

Fixpoint sum {A} (f : A -> R) (keys : list A) : R :=
  match keys with [] => 0 | k :: rest => f k + sum f rest end.

Section Sums.

Context {A : Type}.
Implicit Types (f g : A -> R) (keys : list A).

Lemma sum_app f keys keys' : sum f (keys ++ keys') = sum f keys + sum f keys'.
Proof. induction keys; simpl; lra. Qed.

Lemma sum_permutation f keys keys' : Permutation keys keys' -> sum f keys = sum f keys'.
Proof. induction 1; simpl; lra. Qed.

Lemma sum_plus f g keys : sum (fun k => f k + g k) keys = sum f keys + sum g keys.
Proof. induction keys; simpl; lra. Qed.

Lemma sum_scale x f keys : sum (fun k => x * f k) keys = x * sum f keys.
Proof. induction keys; simpl; lra. Qed.

Lemma sum_zero keys : sum (fun _ : A => 0) keys = 0.
Proof. induction keys; simpl; lra. Qed.

Lemma sum_ones keys : sum (fun _ : A => 1) keys = INR (length keys).
Proof.
  induction keys as [|k rest IH]; [reflexivity|]; cbn [length sum]; rewrite S_INR, IH; ring.
Qed.

(* Two functions that agree on the keys have the same sum. *)
Lemma sum_eq f g keys : (forall k, In k keys -> f k = g k) -> sum f keys = sum g keys.
Proof.
  induction keys as [|k rest IH]; intros same; simpl; [reflexivity|].
  rewrite (same k (or_introl eq_refl)), IH; [reflexivity | intros; apply same; right; assumption].
Qed.

Lemma sum_le f g keys : (forall k, In k keys -> f k <= g k) -> sum f keys <= sum g keys.
Proof.
  induction keys as [|k rest IH]; intros below; simpl; [lra|].
  apply Rplus_le_compat; [|apply IH; intros]; apply below; [left; reflexivity | right; assumption].
Qed.

Lemma sum_nonneg f keys : (forall k, In k keys -> 0 <= f k) -> 0 <= sum f keys.
Proof. intros P; rewrite <- (sum_zero keys); apply sum_le, P. Qed.

Lemma sum_positive f keys : keys <> [] -> (forall k, In k keys -> 0 < f k) -> 0 < sum f keys.
Proof.
  destruct keys as [|k rest]; [congruence|]; intros _ P; simpl.
  apply Rplus_lt_le_0_compat; [|apply sum_nonneg; intros; left]; apply P;
    [left; reflexivity | right; assumption].
Qed.

Lemma sum_abs f keys : Rabs (sum f keys) <= sum (fun k => Rabs (f k)) keys.
Proof.
  induction keys as [|k rest IH]; simpl; [rewrite Rabs_R0; lra|].
  eapply Rle_trans; [apply Rabs_triang | lra].
Qed.

(* Bounding a sum term by term. *)
Lemma sum_abs_le f g keys :
  (forall k, In k keys -> Rabs (f k) <= g k) -> Rabs (sum f keys) <= sum g keys.
Proof. intros; eapply Rle_trans; [apply sum_abs | apply sum_le; assumption]. Qed.

(* A sum with positive weights is at most the largest element times the weight. *)
Lemma weighted_sum_le weight f top keys :
  (forall k, In k keys -> 0 <= weight k) -> (forall k, In k keys -> Rabs (f k) <= top) ->
  Rabs (sum (fun k => weight k * f k) keys) <= top * sum weight keys.
Proof.
  intros P below; rewrite <- sum_scale; apply sum_abs_le; intros k i.
  rewrite Rabs_mult, Rabs_right, Rmult_comm by (apply Rle_ge, P, i).
  apply Rmult_le_compat_r; auto.
Qed.

End Sums.

(* Exchanging two sums. *)
Lemma sum_swap {A B} (f : A -> B -> R) keys columns :
  sum (fun k => sum (f k) columns) keys = sum (fun c => sum (fun k => f k c) keys) columns.
Proof.
  induction keys as [|k rest IH]; simpl; [now rewrite sum_zero|].
  rewrite sum_plus, IH; reflexivity.
Qed.

(* ---------- absolute values ---------- *)

Lemma Rabs_bounds x b : Rabs x <= b -> - b <= x <= b.
Proof. unfold Rabs; destruct (Rcase_abs x); lra. Qed.

Lemma Rabs_plus_le x y a b : Rabs x <= a -> Rabs y <= b -> Rabs (x + y) <= a + b.
Proof. intros; eapply Rle_trans; [apply Rabs_triang | lra]. Qed.

Lemma Rabs_minus_le x y a b : Rabs x <= a -> Rabs y <= b -> Rabs (x - y) <= a + b.
Proof. intros; unfold Rminus; apply Rabs_plus_le; [|rewrite Rabs_Ropp]; assumption. Qed.

Lemma Rabs_mult_le x y a b : Rabs x <= a -> Rabs y <= b -> Rabs (x * y) <= a * b.
Proof. intros; rewrite Rabs_mult; apply Rmult_le_compat; auto using Rabs_pos. Qed.

(* |x / y| <= a / b when |x| <= a and y >= b > 0. *)
Lemma Rabs_div_le x y a b : 0 < b -> b <= y -> Rabs x <= a -> Rabs (x / y) <= a / b.
Proof.
  intros; unfold Rdiv; apply Rabs_mult_le; [assumption|].
  rewrite Rabs_inv, Rabs_right by lra; apply Rinv_le_contravar; lra.
Qed.

(* ---------- e^x and e^x - 1 ---------- *)

Definition expm1 (x : R) : R := exp x - 1.

Lemma exp_le x y : x <= y -> exp x <= exp y.
Proof. intros [less | ->]; [left; apply exp_increasing, less | lra]. Qed.

Lemma ln_le x y : 0 < x -> x <= y -> ln x <= ln y.
Proof. intros P [less | ->]; [left; apply ln_increasing; assumption | lra]. Qed.

Lemma exp_at_least x : 1 + x <= exp x.
Proof.
  destruct (Req_dec x 0) as [-> | ne]; [rewrite exp_0; lra | left; apply exp_ineq1, ne].
Qed.

Lemma exp_inverse x : exp x * exp (- x) = 1.
Proof. rewrite <- exp_plus, Rplus_opp_r; apply exp_0. Qed.

Lemma expm1_0 : expm1 0 = 0.
Proof. unfold expm1; rewrite exp_0; lra. Qed.

Lemma expm1_le x y : x <= y -> expm1 x <= expm1 y.
Proof. intros le; apply exp_le in le; unfold expm1; lra. Qed.

Lemma expm1_nonneg x : 0 <= x -> 0 <= expm1 x.
Proof. intros; rewrite <- expm1_0; apply expm1_le; assumption. Qed.

Lemma expm1_plus x y : expm1 (x + y) = exp x * expm1 y + expm1 x.
Proof. unfold expm1; rewrite exp_plus; ring. Qed.

(* The relative error e^x - 1 of a budget |x| <= b is at most expm1(b), on either side. *)
Lemma Rabs_expm1_le x b : Rabs x <= b -> Rabs (expm1 x) <= expm1 b.
Proof.
  intros near%Rabs_bounds; pose proof (exp_le x b (proj2 near)).
  pose proof (exp_le (- b) x ltac:(lra)); pose proof (exp_inverse b); pose proof (exp_pos b).
  assert (0 <= (exp b - 1) * (exp b - 1)) by apply Rle_0_sqr.
  unfold expm1; apply Rabs_le; nra.
Qed.

Lemma Rabs_exp_le x b : Rabs x <= b -> Rabs (exp x) <= exp b.
Proof.
  intros near%Rabs_bounds; rewrite Rabs_right by (left; apply exp_pos).
  apply exp_le; lra.
Qed.
