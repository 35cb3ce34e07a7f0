#include "tutorials/10_not_ours/trial.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "oracle/generate/random.hpp"

namespace ringproof::tutorials {
namespace {

std::vector<float> drawn(long count, const char* name) {
  oracle::Random random(10, name);
  std::vector<float> numbers;
  for (long n = 0; n < count; ++n) numbers.push_back(float(random.normal()));
  return numbers;
}

}  // namespace

Trial::Trial(long H, long Nq, long Nk, long D)
    : heads(H),
      queries(Nq),
      keys(Nk),
      d(D),
      q(drawn(H * Nq * D, "q")),
      k(drawn(H * Nk * D, "k")),
      v(drawn(H * Nk * D, "v")),
      out(q.size()),
      lse(H * Nq) {}

void Trial::run(Kernel kernel) {
  kernel(q.data(), k.data(), v.data(), heads, 1, queries, keys, d, d, out.data(), lse.data());
}

// [difference]
double Trial::largest_difference() const {
  double largest = 0;
  for (long row = 0; row < heads * queries; ++row) {
    const long first = row / queries * keys;  // of the head's keys
    std::vector<double> o(d, 0.0);
    double l = 0;
    for (long j = first; j < first + keys; ++j) {
      double s = 0;
      for (long t = 0; t < d; ++t) s += double(q[row * d + t]) * k[j * d + t];
      const double w = std::exp(s / std::sqrt(double(d)));
      l += w;
      for (long t = 0; t < d; ++t) o[t] += w * v[j * d + t];
    }
    for (long t = 0; t < d; ++t) {
      largest = std::max(largest, std::fabs(out[row * d + t] - o[t] / l));
    }
  }
  return largest;
}
// [/difference]

// [judged]
ringproof_result Trial::judged() const {
  const int64_t of_queries[] = {1, heads, queries, d}, of_keys[] = {1, heads, keys, d};
  const int64_t of_rows[] = {1, heads, queries};
  const auto view = [](const std::vector<float>& numbers, const int64_t* shape, int axes = 4) {
    return ringproof_view(const_cast<float*>(numbers.data()), RINGPROOF_F32, axes, shape);
  };
  ringproof_problem problem;
  ringproof_answer answer;
  ringproof_result result;
  ringproof_problem_init(&problem);
  ringproof_answer_init(&answer);
  ringproof_result_init(&result);
  problem.q = view(q, of_queries);
  problem.k = view(k, of_keys);
  problem.v = view(v, of_keys);
  answer.out = view(out, of_queries);
  answer.lse = view(lse, of_rows, 3);
  char message[4096];
  if (ringproof_check(&problem, &answer, "fp32", nullptr, &result, message, sizeof message) != 0) {
    throw std::runtime_error(message);
  }
  return result;
}
// [/judged]

}  // namespace ringproof::tutorials
