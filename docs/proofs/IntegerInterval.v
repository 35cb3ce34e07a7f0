(* The tactic `interval`, computing with plain integers.

   It proves inequalities between expressions of real numbers by enclosing them inside Coq's kernel.
   The library's default computes with machine floats and machine integers, and a proof by it rests
   on some sixty axioms about them.  This instance is slower and rests on none.

   Use: From ringproof Require Import IntegerInterval.  Import Enclosure. *)

From Interval Require Import Specific_ops Specific_stdz.
From Interval Require Export Tactic.

Module IntegerFloat := SpecificFloat StdZRadix2.
Module Enclosure := IntervalTactic IntegerFloat.
