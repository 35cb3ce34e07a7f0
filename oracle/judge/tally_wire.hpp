// Tallies on their way between the members of a team (wire.hpp).
#pragma once

#include <array>
#include <bit>

#include "oracle/judge/gradient_tally.hpp"
#include "oracle/judge/summed_rows.hpp"
#include "oracle/judge/tally.hpp"
#include "oracle/judge/wire.hpp"

namespace ringproof::oracle {

template <class Wire>
void transfer(Wire& wire, Row& row) {
  auto& [b, h, i] = row;
  wire(b, h, i);
}

template <class Wire>
void transfer(Wire& wire, Box& box) {
  auto& [low, high] = box;
  wire(low, high);
}

template <class Wire>
void transfer(Wire& wire, Element& element) {
  auto& [row, column, answer, exact, accepted, error_over_bound, decision] = element;
  wire(row, column, answer, exact, accepted, error_over_bound, decision);
}

template <class Wire>
void transfer(Wire& wire, Functional& functional) {
  auto& [row, value, bound, decision] = functional;
  wire(row, value, bound, decision);
}

template <class Wire>
void transfer(Wire& wire, Vacuity& vacuity) {
  auto& [differ, pass, functional_refuses] = vacuity;
  wire(differ, pass, functional_refuses);
}

template <class Wire>
void transfer(Wire& wire, TensorTally& tally) {
  auto& [rows, elements, failed, undecided, functional_failed, functional_undecided, not_applicable,
         unconstrained, unbounded, why_not_applicable, worst_element, worst_functional, zeros, mean,
         twice, gain] = tally;
  wire(rows, elements, failed, undecided, functional_failed, functional_undecided, not_applicable,
       unconstrained, unbounded, why_not_applicable, worst_element, worst_functional, zeros, mean,
       twice, gain);
}

template <class Wire>
void transfer(Wire& wire, PowerTally& power) {
  auto& [gain, missing_mass_lse, missing_mass_out, missing_block] = power;
  wire(gain, missing_mass_lse, missing_mass_out, missing_block);
}

template <class Wire>
void transfer(Wire& wire, Suspicion& suspicion) {
  auto& [rows, elements, suspect, worst_element, lean, remainder, variance, drift, drift_scale] =
      suspicion;
  wire(rows, elements, suspect, worst_element, lean, remainder, variance, drift, drift_scale);
}

template <class Wire>
void transfer(Wire& wire, Tally& tally) {
  auto& [out, lse, power, suspicion, escalated, bits] = tally;
  wire(out, lse, power, suspicion, escalated, bits);
}

template <class Wire>
void transfer(Wire& wire, GradientTally& tally) {
  for (TensorTally& tensor : tally.tensors) wire(tensor);
  wire(tally.escalated_rows, tally.escalated_keys, tally.bits);
}

/// As it lies in memory: adding it to nothing would be one more rounding.
template <class Wire>
void transfer(Wire& wire, CertifiedSum& sum) {
  auto numbers = std::bit_cast<std::array<double, 3>>(sum);
  wire(numbers[0], numbers[1], numbers[2]);
  sum = std::bit_cast<CertifiedSum>(numbers);
}

template <class Wire>
void transfer(Wire& wire, SummedElement& element) {
  auto& [value, bound, magnitude] = element;
  wire(value, bound, magnitude);
}

template <class Wire>
void transfer(Wire& wire, SummedRow& row) {
  auto& [elements, not_applicable, failed] = row;
  wire(elements, not_applicable, failed);
}

template <class Wire>
void transfer(Wire& wire, SummedRows& sums) {
  wire(sums.rows_);
}

/// The sums alone: which of them are wanted, every member knows.
template <class Wire>
void transfer(Wire& wire, RowSums& sums) {
  wire(sums.bias, sums.sinks);
}

}  // namespace ringproof::oracle
