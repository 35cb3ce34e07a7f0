// Kernels with a planted mistake, by the plain definition and in binary64: independent of the
// truth, the contract and the diagnosis, so that each can be wrong without the others.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string>

#include "oracle/diagnose/diagnose.hpp"
#include "tests/unit/judge/answered_case.hpp"

namespace ringproof::test {

/// Dense softmax attention with a handle for every part of it.
struct PlainKernel {
  std::function<bool(std::int64_t h, std::int64_t i, std::int64_t j)> sees;
  /// Final score from the plain dot product q k.
  std::function<double(std::int64_t h, std::int64_t i, std::int64_t j, double dot)> score;
  std::function<std::int64_t(std::int64_t h)> k_head, v_head;
  std::function<std::int64_t(std::int64_t j)> k_row, v_row;
  std::function<double(std::int64_t h)> sink;  // empty: none
  std::function<double(double lse)> lse = [](double x) { return x; };

  /// As the problem says.
  explicit PlainKernel(const oracle::Problem& p)
      : sees([&p](std::int64_t h, std::int64_t i, std::int64_t j) {
          return oracle::visible(p, 0, h, i, j);
        }),
        score([&p](std::int64_t h, std::int64_t i, std::int64_t j, double dot) {
          double s = p.spec.scale.value_or(1 / std::sqrt(static_cast<double>(p.head_dim))) * dot;
          if (p.spec.softcap > 0) s = p.spec.softcap * std::tanh(s / p.spec.softcap);
          if (p.bias) s += p.bias.at(0, h, i, j);
          if (p.alibi_slopes) {
            const auto distance = p.position_q[static_cast<std::size_t>(i)] -
                                  p.position_k[static_cast<std::size_t>(j)];
            s -= p.alibi_slopes.at(0, h, 0, 0) * static_cast<double>(std::abs(distance));
          }
          return s;
        }),
        k_head([&p](std::int64_t h) { return p.kv_head(h); }),
        v_head(k_head),
        k_row([](std::int64_t j) { return j; }),
        v_row(k_row) {
    if (p.sinks) sink = [&p](std::int64_t h) { return p.sinks.at(0, h, 0, 0); };
  }
};

/// Stores what the kernel returns as out and lse of the case.
inline void store(const oracle::Problem& p, const PlainKernel& kernel, CaseBuilder& builder) {
  for (std::int64_t h = 0; h < p.heads; ++h) {
    for (std::int64_t i = 0; i < p.queries; ++i) {
      std::vector<double> scores(static_cast<std::size_t>(p.keys), -HUGE_VAL);
      double max = kernel.sink ? kernel.sink(h) : -HUGE_VAL;
      for (std::int64_t j = 0; j < p.keys; ++j) {
        if (!kernel.sees(h, i, j)) continue;
        double dot = 0;
        for (std::int64_t d = 0; d < p.head_dim; ++d) {
          dot += p.q.at(0, h, i, d) * p.k.at(0, kernel.k_head(h), kernel.k_row(j), d);
        }
        scores[static_cast<std::size_t>(j)] = kernel.score(h, i, j, dot);
        max = std::max(max, scores[static_cast<std::size_t>(j)]);
      }
      double sum = kernel.sink ? std::exp(kernel.sink(h) - max) : 0;
      std::vector<double> out(static_cast<std::size_t>(p.value_dim));
      for (std::int64_t j = 0; j < p.keys; ++j) {
        if (scores[static_cast<std::size_t>(j)] == -HUGE_VAL) continue;
        const double weight = std::exp(scores[static_cast<std::size_t>(j)] - max);
        sum += weight;
        for (std::size_t c = 0; c < out.size(); ++c) {
          out[c] +=
              weight * p.v.at(0, kernel.v_head(h), kernel.v_row(j), static_cast<std::int64_t>(c));
        }
      }
      const std::int64_t row = h * p.queries + i;
      for (std::size_t c = 0; c < out.size(); ++c) {
        set_value(builder, "out", row * p.value_dim + static_cast<std::int64_t>(c),
                  sum > 0 ? out[c] / sum : 0);
      }
      set_value(builder, "lse", row, sum > 0 ? kernel.lse(max + std::log(sum)) : -HUGE_VAL);
    }
  }
}

/// Equal up to 2^-bits of their size, or of 1 if that is larger.
inline bool close(double a, double b, int bits) {
  return std::abs(a - b) <= std::ldexp(std::max({std::abs(a), std::abs(b), 1.0}), -bits);
}

struct Diagnosed {
  oracle::Report report;
  oracle::Diagnosis diagnosis;
  /// Ids of the classes that explain, those they may also be filed under included.
  std::set<std::string> ids() const {
    std::set<std::string> all;
    for (const oracle::Explanation& one : diagnosis.explanations) {
      all.insert(one.id);
      std::string also = one.also;
      for (std::size_t comma; (comma = also.find(", ")) != std::string::npos;) {
        all.insert(also.substr(0, comma));
        also = also.substr(comma + 2);
      }
      if (!also.empty()) all.insert(also);
    }
    return all;
  }
};

inline Diagnosed explain(const CaseBuilder& builder, const std::string& contract_name) {
  const oracle::Case input = builder.assemble();
  const oracle::Contract contract = oracle::read_contract(contract_name, input.problem.spec);
  Diagnosed result{oracle::check(input, contract, {}), {}};
  result.diagnosis = oracle::diagnose(input, contract, {}, result.report);
  return result;
}

/// A case of random numbers with the right answer, on which mistakes can be planted.
inline CaseBuilder plain_case(const std::string& spec, const Sizes& sizes, oracle::DType type,
                              unsigned seed = 3) {
  CaseBuilder builder = random_case(type, sizes, seed);
  builder.spec = spec;
  answer(builder, type);
  return builder;
}

}  // namespace ringproof::test
