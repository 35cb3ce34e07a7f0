// The laws: what every attention kernel fulfils, each as a sentence, the features it needs, and a
// function that throws Failure if the kernel breaks it. Laws are in laws_*.cpp, one theme a file.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tests/suite/trial.hpp"

namespace ringproof::suite {

struct Law {
  std::string_view id;
  std::string_view sentence;
  Features needs{};  // without them the law is skipped
  /// Forces what the law is about; applied to every drawn and shrunk description.
  void (*adjust)(Description&) = nullptr;
  void (*holds)(Trial&, const Description&) = nullptr;
};

std::span<const Law> semantics_laws();
std::span<const Law> softmax_laws();
std::span<const Law> value_laws();
std::span<const Law> mask_laws();
std::span<const Law> kernel_laws();
std::span<const Law> size_laws();
std::span<const Law> ring_laws();
std::span<const Law> serving_laws();
std::span<const Law> gradient_laws();

/// All of them, forward first.
const std::vector<Law>& all_laws();

/// Laws are about plain rows where they permute, cut or prescribe them: no rows by documents or
/// lengths, no mask or addition that the law did not ask for.
void plain(Description&);

/// 0 .. count - 1 in an order that depends on `seed`.
std::vector<Index> shuffled(Index count, std::uint32_t seed);

}  // namespace ringproof::suite
