// Calls and judgements (trial.hpp).
#include "tests/suite/trial.hpp"

#include <bit>
#include <cmath>

#include "oracle/case/assemble.hpp"
#include "oracle/case/error.hpp"
#include "oracle/judge/check.hpp"
#include "oracle/report/report.hpp"
#include "tests/suite/case_text.hpp"

namespace ringproof::suite {
namespace {

template <class Visit>
void each_element(const oracle::Tensor& tensor, const Visit& visit) {
  for (Index b = 0; b < tensor.shape[0]; ++b) {
    for (Index h = 0; h < tensor.shape[1]; ++h) {
      for (Index n = 0; n < tensor.shape[2]; ++n) {
        for (Index d = 0; d < tensor.shape[3]; ++d) visit(tensor.address(b, h, n, d));
      }
    }
  }
}

std::vector<double> numbers(const oracle::Tensor& tensor) {
  std::vector<double> result;
  each_element(tensor, [&](const std::byte* place) {
    result.push_back(oracle::decode(tensor.dtype, place));
  });
  return result;
}

/// Writes canonical numbers into a laid answer, rounded to its type.
void put_numbers(const oracle::Tensor& tensor, const std::vector<double>& values) {
  std::size_t n = 0;
  each_element(tensor, [&](const std::byte* place) {
    oracle::encode(tensor.dtype, oracle::round_nearest(tensor.dtype, values.at(n++)),
                   const_cast<std::byte*>(place));
  });
}

bool same(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

std::string in_words(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

/// The refused answers of a report, each with its worst element.
std::string refusal(const oracle::Report& report) {
  std::string text;
  for (const oracle::AnswerReport& answer : report.answers) {
    if (answer.verdict != oracle::Verdict::fail) continue;
    const oracle::TensorTally& tally = answer.tally;
    text += (text.empty() ? "" : "; ") + std::string(oracle::name(answer.kind)) + ": " +
            std::to_string(tally.failed) + " of " + std::to_string(tally.elements) +
            " elements refused";
    if (tally.worst_element) {
      const oracle::Element& worst = *tally.worst_element;
      text += ", worst " + oracle::place(answer.kind, worst.row, worst.column) + " is " +
              in_words(worst.answer) + ", accepted " + in_words(worst.accepted.low) + " to " +
              in_words(worst.accepted.high);
    }
    if (tally.functional_failed > 0) {
      text += ", " + std::to_string(tally.functional_failed) + " rows refused as a whole";
    }
  }
  return text;
}

}  // namespace

std::string Judgements::never_decided() const {
  for (const auto& [answer, reason] : undecided) {
    if (decided.count(answer) == 0) return answer + ": " + reason;
  }
  return {};
}

Features features_of(const Draft& draft) {
  Features features;
  const auto add_if = [&](bool asked, Feature feature) {
    if (asked) features.add(feature);
  };
  const oracle::Spec& spec = draft.spec;
  add_if(draft.gradients, Feature::gradients);
  add_if(draft.batches > 1, Feature::batches);
  add_if(draft.heads != draft.kv_heads, Feature::grouped_heads);
  add_if(draft.queries != draft.keys, Feature::cross);
  add_if(draft.value_dim != draft.head_dim, Feature::value_dim);
  add_if(spec.scale.has_value(), Feature::scale);
  add_if(spec.causal == oracle::Causal::top_left, Feature::causal_top_left);
  add_if(spec.causal == oracle::Causal::bottom_right, Feature::causal_bottom_right);
  add_if(spec.window_left >= 0 || spec.window_right >= 0, Feature::window);
  add_if(draft.has("mask"), Feature::mask);
  add_if(draft.has("bias"), Feature::bias);
  add_if(draft.has("alibi_slopes"), Feature::alibi);
  add_if(spec.softcap > 0, Feature::softcap);
  add_if(draft.has("sinks"), Feature::sinks);
  add_if(draft.has("key_lengths"), Feature::key_lengths);
  add_if(draft.has("cu_seqlens_q"), Feature::packed);
  add_if(draft.has("documents_q"), Feature::documents);
  add_if(draft.has("positions_q"), Feature::positions);
  add_if(spec.layout == oracle::AxisOrder::bnhd, Feature::bnhd);
  add_if(spec.layout == oracle::AxisOrder::nhd, Feature::nhd);
  add_if(draft.stride_gap > 0, Feature::strides);
  add_if(draft.keys == 0, Feature::no_keys);
  add_if(spec.empty_row == oracle::EmptyRow::nan, Feature::empty_nan);
  add_if(spec.ranks.value_or(1) > 1, Feature::ranks);
  if (spec.ring) {
    add_if(spec.ring->layout == oracle::RingLayout::zigzag, Feature::zigzag);
    add_if(spec.ring->layout == oracle::RingLayout::striped, Feature::striped);
    add_if(spec.ring->order == oracle::RingOrder::up, Feature::up);
  }
  return features;
}

Trial::Trial(const Candidate& candidate, std::string contract)
    : candidate_(candidate), contract_(std::move(contract)) {
  const oracle::Contract terms = oracle::read_contract(contract_, {});
  const bool binary64 = terms.out.dtype == oracle::DType::f64;
  types_.input = terms.inputs.dtype;
  types_.addition = binary64 ? oracle::DType::f64 : oracle::DType::f32;
  wanted_.out = wanted_.gradient = terms.out.dtype;
  wanted_.lse = types_.addition;
  sizes_.support = candidate.support;
}

Wanted Trial::wanted(const Draft& draft) const {
  Wanted wanted = wanted_;
  wanted.with_lse = can(Feature::lse);
  wanted.with_gradients = draft.gradients;
  return wanted;
}

oracle::Case Trial::as_case(const Laid& laid) const {
  const oracle::Source problem = problem_source(*laid.problem());
  const oracle::Source answer = answer_source(*const_cast<Laid&>(laid).answer());
  return oracle::assemble_case(problem, answer, problem_spec(*laid.problem()));
}

Answer Trial::run(const Draft& draft, Fill fill) {
  Laid laid(draft, wanted(draft), fill, candidate_.memory);
  if (before_call_) before_call_();
  ++calls_;
  try {
    if (candidate_.run(candidate_.context, laid.problem(), laid.answer()) != 0) {
      throw NotSupported{features_of(draft)};
    }
  } catch (const KernelDied& death) {
    throw Failure{death.what(), draft, {}, death.death};
  }
  Answer answer;
  const oracle::Case answered = as_case(laid);
  for (const oracle::Answer& one : answered.answers) {
    answer[std::string(oracle::name(one.kind))] = numbers(one.tensor);
  }
  if (const auto name = laid.modified_input()) {
    throw Failure{"the kernel wrote into its input " + *name, draft, answer};
  }
  if (const auto name = laid.written_guard()) {
    throw Failure{"the kernel wrote beside its output " + *name, draft, answer};
  }
  return answer;
}

Answer Trial::judged(const Draft& draft) {
  Answer answer = run(draft);
  judge(draft, answer);
  return answer;
}

void Trial::judge(const Draft& draft, const Answer& answer, const std::string& contract) const {
  Laid laid(draft, wanted(draft), Fill::nan, {});
  oracle::Case answered = as_case(laid);
  for (const oracle::Answer& one : answered.answers) {
    put_numbers(one.tensor, answer.at(std::string(oracle::name(one.kind))));
  }
  const std::string& name = contract.empty() ? contract_ : contract;
  const oracle::Contract terms = oracle::read_contract(name, answered.problem.spec);
  oracle::CheckOptions options;
  options.walk.threads = 1;
  const oracle::Report report = oracle::check(answered, terms, options);
  for (const oracle::AnswerReport& one : report.answers) {
    const std::string kind(oracle::name(one.kind));
    if (one.verdict == oracle::Verdict::undecided) {
      judgements_.undecided[kind] = one.reason;
    } else {
      ++judgements_.decided[kind];
    }
  }
  if (report.verdict == oracle::Verdict::fail) throw Failure{refusal(report), draft, answer};
}

bool Trial::repeats(const Draft& draft) {
  const Answer first = run(draft), second = run(draft);
  return std::all_of(first.begin(), first.end(), [&](const auto& one) {
    const std::vector<double>& other = second.at(one.first);
    return std::equal(one.second.begin(), one.second.end(), other.begin(), other.end(), same);
  });
}

void Trial::same_bits(const Draft& draft, const Answer& got, const Answer& expected,
                      const std::string& what, const std::vector<std::string>& names) {
  for (const auto& [name, values] : got) {
    if (!names.empty() && std::find(names.begin(), names.end(), name) == names.end()) continue;
    const std::vector<double>& other = expected.at(name);
    for (std::size_t n = 0; n < values.size(); ++n) {
      if (same(values[n], other.at(n))) continue;
      const std::string cause = repeats(draft) ? what : "two equal calls differ";
      throw Failure{cause + ": element " + std::to_string(n) + " of " + name + " is " +
                        in_words(values[n]) + " and not " + in_words(other[n]),
                    draft, got};
    }
  }
}

void Trial::write(const std::string& path, const Draft& draft, const Answer& answer) const {
  Laid laid(draft, wanted(draft), Fill::nan, {});
  const oracle::Case answered = as_case(laid);
  for (const oracle::Answer& one : answered.answers) {
    const auto given = answer.find(std::string(oracle::name(one.kind)));
    if (given != answer.end()) put_numbers(one.tensor, given->second);
  }
  oracle::Source all = problem_source(*laid.problem());
  if (!answer.empty()) {
    for (const auto& [name, tensor] : answer_source(*laid.answer()).tensors) {
      all.tensors.emplace(name, tensor);
    }
  }
  oracle::Spec spec = problem_spec(*laid.problem());
  spec.contract = contract_;
  write_source(path, all, spec);
}

}  // namespace ringproof::suite
