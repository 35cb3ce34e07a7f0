(* Theorem T1R of the contract: the recursion (23) for partial results whose keys are known.

   In words.  The keys are dealt out to ranks.  Rank r's partial is stored with a relative error s_r
   and merged into the running result, at step t with factors e^{b1}, e^{b2} on the two parts and
   e^d on their sum:

     partial_r = (sum_{j in S_r} p_j e^{c_j + a_j} v_j) e^{s_r}
     running_1 = partial_1,   running_t = (running_{t-1} e^{b1} + partial_t e^{b2}) e^d.

   Storage and merge errors act on signed partial sums, so with N_r = sum_{S_r} p v,
   X_t = N_1 + .. + N_t, k_r = sum_{S_r} p expm1(C) |v| and its sums K_t, l_r = sum_{S_r} p e^C
   expm1(A) |v|:

     Eh_r = e^S l_r + expm1(S) (|N_r| + k_r),   E_1 = Eh_1
     E_t  = e^De [ e^{Al1} E_{t-1} + expm1(Al1) (|X_{t-1}| + K_{t-1})
                   + e^{Al2} Eh_t + expm1(Al2) (|N_t| + k_t) ] + expm1(De) (|X_t| + K_t)
     |running_R - sum_j p_j e^{c_j} v_j| <= E_R,

   and the quotient of W running_R + g + W pt by the denominator of (21) is within

     e0 = { sum p expm1(C) |v - o| + E_R + |o| sum p e^C expm1(B) + (G + H |o|) / W + Pt } / D  (23)

   of o.  Bounds may differ from merge to merge; empty ranks are no ranks. *)

Require Import Reals Lra List.
From ringproof Require Import Sums OutputBound.
Import ListNotations.
Open Scope R_scope.

Section Row.

Context {Key : Type}.
Variables (w v : Key -> R).

(* A rank: its keys, the actual errors of its store and its merge, and their bounds. *)
Record rank := Rank {
  of_rank : list Key;
  store : R; beta1 : R; beta2 : R; delta : R;
  Store : R; Al1 : R; Al2 : R; De : R
}.

Definition rank_within (r : rank) : Prop :=
  Rabs (store r) <= Store r /\ Rabs (beta1 r) <= Al1 r /\ Rabs (beta2 r) <= Al2 r
  /\ Rabs (delta r) <= De r.

Variables (first : rank) (others : list rank).
Definition keys : list Key := concat (map of_rank (first :: others)).

Variables e E : @errors Key.
Hypothesis errors_within : within keys e E.
Hypothesis ranks_within : forall r, In r (first :: others) -> rank_within r.
Hypothesis some_key : keys <> [].
Hypothesis w_positive : forall k, In k keys -> 0 < w k.
Hypothesis D_positive : 0 < D keys w E.

Notation W := (W keys w).
Notation p := (p keys w).
Notation o := (o keys w v).
Notation D := (D keys w E).

(* ---------- partial results ---------- *)

Definition N (r : rank) : R := sum (fun k => p k * v k) (of_rank r).
Definition shaken (r : rank) : R := sum (fun k => p k * exp (c e k) * v k) (of_rank r).
Definition partial (r : rank) : R :=
  sum (fun k => p k * exp (c e k + a e k) * v k) (of_rank r) * exp (store r).

Definition kk (r : rank) : R := sum (fun k => p k * (expm1 (c E k) * Rabs (v k))) (of_rank r).
Definition ll (r : rank) : R :=
  sum (fun k => p k * (exp (c E k) * (expm1 (a E k) * Rabs (v k)))) (of_rank r).
Definition Eh (r : rank) : R := exp (Store r) * ll r + expm1 (Store r) * (Rabs (N r) + kk r).

Lemma in_keys r k : In r (first :: others) -> In k (of_rank r) -> In k keys.
Proof. intros ir ik; apply in_concat; exists (of_rank r); split; [apply in_map|]; assumption. Qed.

Lemma shaken_near r : In r (first :: others) -> Rabs (shaken r - N r) <= kk r.
Proof.
  intros ir; unfold shaken, N, kk.
  replace (_ - _) with (sum (fun k => p k * (expm1 (c e k) * v k)) (of_rank r)).
  - apply sum_abs_le; intros k ik; pose proof (in_keys r k ir ik) as i.
    pose proof (p_positive keys w some_key w_positive k i); destruct errors_within as (per_key & _).
    destruct (per_key k i) as (Hc & _).
    apply Rabs_mult_le; [rewrite Rabs_right; lra|].
    apply Rabs_mult_le; [now apply Rabs_expm1_le | apply Rle_refl].
  - unfold Rminus; rewrite <- (Rmult_1_l (sum _ (of_rank r))) at 1.
    replace (- sum (fun k => p k * v k) (of_rank r))
      with (-1 * sum (fun k => p k * v k) (of_rank r)) by ring.
    rewrite <- !sum_scale, <- sum_plus; apply sum_eq; intros; unfold expm1; ring.
Qed.

Lemma shaken_size r : In r (first :: others) -> Rabs (shaken r) <= Rabs (N r) + kk r.
Proof.
  intros ir; replace (shaken r) with (N r + (shaken r - N r)) by ring.
  apply Rabs_plus_le; [apply Rle_refl | now apply shaken_near].
Qed.

Lemma partial_near r : In r (first :: others) -> Rabs (partial r - shaken r) <= Eh r.
Proof.
  intros ir; destruct (ranks_within r ir) as (small & _); unfold partial, Eh.
  set (x := sum _ (of_rank r)).
  replace (x * exp (store r) - shaken r) with
    (exp (store r) * (x - shaken r) + expm1 (store r) * shaken r) by (unfold expm1; ring).
  apply Rabs_plus_le; apply Rabs_mult_le; auto using Rabs_exp_le, Rabs_expm1_le, shaken_size.
  unfold x, shaken, ll.
  replace (_ - _) with (sum (fun k => p k * (exp (c e k) * (expm1 (a e k) * v k))) (of_rank r)).
  - apply sum_abs_le; intros k ik; pose proof (in_keys r k ir ik) as i.
    pose proof (p_positive keys w some_key w_positive k i); destruct errors_within as (per_key & _).
    destruct (per_key k i) as (Hc & Ha & _).
    apply Rabs_mult_le; [rewrite Rabs_right; lra|]; apply Rabs_mult_le; [now apply Rabs_exp_le|].
    apply Rabs_mult_le; [now apply Rabs_expm1_le | apply Rle_refl].
  - unfold Rminus; rewrite <- (Rmult_1_l (sum (fun k => _ * exp (_ + _) * _) _)).
    replace (- sum (fun k => p k * exp (c e k) * v k) (of_rank r))
      with (-1 * sum (fun k => p k * exp (c e k) * v k) (of_rank r)) by ring.
    rewrite <- !sum_scale, <- sum_plus; apply sum_eq; intros; unfold expm1; rewrite exp_plus; ring.
Qed.

(* ---------- the merges ---------- *)

Fixpoint running (value : R) (rest : list rank) : R :=
  match rest with
  | [] => value
  | r :: rest => running ((value * exp (beta1 r) + partial r * exp (beta2 r)) * exp (delta r)) rest
  end.

(* One step of the recursion, from E, X, K of the ranks so far. *)
Definition E_step (En X K : R) (r : rank) : R :=
  exp (De r) * (exp (Al1 r) * En + expm1 (Al1 r) * (Rabs X + K)
                + exp (Al2 r) * Eh r + expm1 (Al2 r) * (Rabs (N r) + kk r))
  + expm1 (De r) * (Rabs (X + N r) + (K + kk r)).

Fixpoint E_last (En X K : R) (rest : list rank) : R :=
  match rest with
  | [] => En
  | r :: rest => E_last (E_step En X K r) (X + N r) (K + kk r) rest
  end.

Definition E_R : R := E_last (Eh first) (N first) (kk first) others.

Lemma merges_near value X X' K En rest : (forall r, In r rest -> In r (first :: others)) ->
  Rabs (value - X') <= En -> Rabs (X' - X) <= K ->
  Rabs (running value rest - (X' + sum shaken rest)) <= E_last En X K rest.
Proof.
  revert value X X' K En; induction rest as [|r rest IH]; intros value X X' K En known near close;
    cbn [running E_last sum]; [rewrite Rplus_0_r; exact near|].
  assert (ir : In r (first :: others)) by (apply known; left; reflexivity).
  rewrite <- Rplus_assoc; apply IH; [intros; apply known; right; assumption | |].
  - destruct (ranks_within r ir) as (_ & H1 & H2 & H3); unfold E_step.
    replace ((value * exp (beta1 r) + partial r * exp (beta2 r)) * exp (delta r) - (X' + shaken r))
      with (exp (delta r) * (exp (beta1 r) * (value - X') + expm1 (beta1 r) * X'
              + exp (beta2 r) * (partial r - shaken r) + expm1 (beta2 r) * shaken r)
            + expm1 (delta r) * (X' + shaken r)) by (unfold expm1; ring).
    assert (size : Rabs X' <= Rabs X + K).
    { replace X' with (X + (X' - X)) by ring; apply Rabs_plus_le; [apply Rle_refl | exact close]. }
    apply Rabs_plus_le; apply Rabs_mult_le; auto using Rabs_exp_le, Rabs_expm1_le.
    + repeat (apply Rabs_plus_le); apply Rabs_mult_le;
        auto using Rabs_exp_le, Rabs_expm1_le, shaken_size, partial_near.
    + replace (X' + shaken r) with ((X + N r) + ((X' - X) + (shaken r - N r))) by ring.
      apply Rabs_plus_le; [apply Rle_refl | apply Rabs_plus_le; auto using shaken_near].
  - replace (X' + shaken r - (X + N r)) with ((X' - X) + (shaken r - N r)) by ring.
    apply Rabs_plus_le; auto using shaken_near.
Qed.

Lemma sum_over_ranks f : sum f keys = sum (fun r => sum f (of_rank r)) (first :: others).
Proof.
  unfold keys; generalize (first :: others); induction l as [|r rest IH]; [reflexivity|].
  cbn [map concat]; rewrite sum_app, IH; reflexivity.
Qed.

Definition result : R := running (partial first) others.

Theorem merged_numerator : Rabs (result - sum (fun k => p k * exp (c e k) * v k) keys) <= E_R.
Proof.
  rewrite sum_over_ranks; apply merges_near; [intros; right; assumption | |].
  - apply partial_near; left; reflexivity.
  - apply shaken_near; left; reflexivity.
Qed.

(* ---------- the quotient ---------- *)

Definition known_numerator : R := W * result + g e + W * pt e.

Definition e0_known : R :=
  (sum (fun k => p k * (expm1 (c E k) * Rabs (v k - o))) keys + E_R
   + Rabs o * sum (fun k => p k * (exp (c E k) * expm1 (b E k))) keys
   + (g E + h E * Rabs o) / W + pt E) / D.

(* (23) *)
Theorem known_partition_bound :
  Rabs (known_numerator / denominator keys w e - o) <= e0_known.
Proof.
  pose proof (W_positive keys w some_key w_positive).
  pose proof (denominator_positive keys w some_key w_positive E D_positive).
  pose proof (denominator_large keys w some_key w_positive e E errors_within).
  destruct errors_within as (per_key & small_g & small_h & small_pt & _).
  set (below := denominator keys w e) in *.
  replace (known_numerator / below - o) with ((known_numerator - o * below) / below) by (field;
      lra).
  unfold e0_known; set (top := _ + pt E).
  replace (top / D) with (W * top / (W * D)) by (field; lra).
  apply Rabs_div_le; try assumption; unfold top.
  (* The numerator, its shared errors, and the deviations that cancel. *)
  replace (known_numerator - o * below) with
    (sum (fun k => w k * (expm1 (c e k) * (v k - o))) keys
     + W * (result - sum (fun k => p k * exp (c e k) * v k) keys)
     - o * sum (fun k => w k * (exp (c e k) * expm1 (b e k))) keys
     + (g e - o * h e) + W * pt e).
  - rewrite !Rmult_plus_distr_l, (W_times keys w some_key w_positive).
    replace (W * (Rabs o * sum (fun k => p k * (exp (c E k) * expm1 (b E k))) keys)) with
      (Rabs o * sum (fun k => w k * (exp (c E k) * expm1 (b E k))) keys)
      by (rewrite <- (W_times keys w some_key w_positive); ring).
    replace (W * ((g E + h E * Rabs o) / W)) with (g E + Rabs o * h E) by (field; lra).
    apply Rabs_plus_le; [apply Rabs_plus_le; [apply Rabs_minus_le; [apply Rabs_plus_le|]|]|].
    + apply sum_abs_le; intros k i; pose proof (w_positive k i); destruct (per_key k i) as (Hc & _).
      apply Rabs_mult_le; [rewrite Rabs_right; lra|].
      apply Rabs_mult_le; [now apply Rabs_expm1_le | apply Rle_refl].
    + apply Rabs_mult_le; [rewrite Rabs_right; lra | apply merged_numerator].
    + apply Rabs_mult_le; [apply Rle_refl | apply sum_abs_le; intros k i].
      pose proof (w_positive k i); destruct (per_key k i) as (Hc & _ & Hb).
      apply Rabs_mult_le; [rewrite Rabs_right; lra|].
      apply Rabs_mult_le; [now apply Rabs_exp_le | now apply Rabs_expm1_le].
    + apply Rabs_minus_le; [assumption | apply Rabs_mult_le; [apply Rle_refl | assumption]].
    + apply Rabs_mult_le; [rewrite Rabs_right|]; lra.
  - unfold known_numerator, below, denominator.
    assert (Ew : W * sum (fun k => p k * exp (c e k) * v k) keys
                 = sum (fun k => w k * (exp (c e k) * v k)) keys).
    { rewrite <- (W_times keys w some_key w_positive); f_equal; apply sum_eq; intros; ring. }
    pose proof (deviations_cancel keys w v some_key w_positive) as Z.
    rewrite Rmult_minus_distr_l, Ew.
    rewrite (sum_eq (fun k => w k * (expm1 (c e k) * (v k - o)))
      (fun k => w k * (exp (c e k) * v k) + (- o * (w k * exp (c e k)) + -1 * (w k * (v k - o)))))
      by (intros; unfold expm1; ring).
    rewrite (sum_eq (fun k => w k * exp (c e k + b e k))
      (fun k => w k * exp (c e k) + w k * (exp (c e k) * expm1 (b e k))))
      by (intros; unfold expm1; rewrite exp_plus; ring).
    rewrite !sum_plus, !sum_scale, Z; ring.
Qed.

End Row.

(* ---------- not vacuous ---------- *)

(* Ranks that neither store nor merge with errors, and no other errors: the answer is exact. *)
Theorem exact_merge {Key : Type} (w v : Key -> R) (groups : list (list Key)) (one : list Key) :
  let exact_rank := fun g => Rank g 0 0 0 0 0 0 0 0 in
  let first := exact_rank one in let others := map exact_rank groups in
  let row := keys first others in
  row <> [] -> (forall k, In k row -> 0 < w k) ->
  result w v first others no_errors = o row w v.
Proof.
  intros exact_rank first others row some positive.
  assert (zero : forall r, In r (first :: others) ->
    Eh w v first others no_errors r = 0 /\ kk w v first others no_errors r = 0).
  { intros r [<- | i]; [|apply in_map_iff in i as (g & <- & _)]; unfold Eh, ll, kk; cbn;
      rewrite !expm1_0, exp_0, !Rmult_0_l, !Rplus_0_r, !Rmult_1_l;
      split; rewrite (sum_eq _ (fun _ => 0)) by (intros; ring); apply sum_zero. }
  assert (last_zero : E_R w v first others no_errors = 0).
  { unfold E_R; destruct (zero first (or_introl eq_refl)) as (-> & ->).
    assert (G : forall rest X, (forall r, In r rest -> In r others) ->
      E_last w v first others no_errors 0 X 0 rest = 0).
    { induction rest as [|r rest IH]; intros X known; [reflexivity|]; cbn [E_last].
      assert (ir : In r others) by (apply known; left; reflexivity).
      destruct (zero r (or_intror ir)) as (Z1 & Z2); apply in_map_iff in ir as (g & <- & _).
      unfold E_step; rewrite Z1, Z2; cbn [De Al1 Al2 exact_rank]; rewrite !expm1_0.
      replace (_ * _ + 0 * _) with 0 by ring; rewrite Rplus_0_r; apply IH.
      intros; apply known; right; assumption. }
    apply G; trivial. }
  assert (near := merged_numerator w v first others no_errors no_errors).
  rewrite last_zero in near; unfold o.
  assert (E : Rabs (result w v first others no_errors
    - sum (fun k => p row w k * exp (c no_errors k) * v k) row) <= 0).
  { apply near; trivial.
    - repeat split; cbn; rewrite Rabs_R0; lra.
    - intros r [<- | i]; [|apply in_map_iff in i as (g & <- & _)];
        repeat split; cbn; rewrite Rabs_R0; lra. }
  rewrite (sum_eq (fun k => p row w k * exp (c no_errors k) * v k) (fun k => p row w k * v k)) in E
    by (intros; cbn; rewrite exp_0; ring).
  pose proof (Rabs_pos (result w v first others no_errors - sum (fun k => p row w k * v k) row)).
  apply Rabs_bounds in E; lra.
Qed.
