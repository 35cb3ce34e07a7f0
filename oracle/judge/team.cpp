#include "oracle/judge/team.hpp"

#include <algorithm>

#include "oracle/case/case_file.hpp"
#include "oracle/case/error.hpp"

namespace ringproof::oracle {

namespace {

constexpr std::int64_t kSamples = 4096;  // of one tensor

class Digest {
 public:
  void add(const void* data, std::size_t size) {
    for (std::size_t n = 0; n < size; ++n) {
      hash_ = (hash_ ^ static_cast<const unsigned char*>(data)[n]) * 0x100000001b3u;
    }
  }
  void add(std::string_view text) { add(text.data(), text.size()); }
  void add(const Tensor& tensor) {
    add(&tensor.dtype, sizeof tensor.dtype);
    add(tensor.shape.data(), sizeof tensor.shape);
    if (!tensor) return;
    const auto& [B, H, N, D] = tensor.shape;
    const std::int64_t rows = B * H * N, samples = std::min(rows, kSamples);
    for (std::int64_t sample = 0; sample < samples && D > 0; ++sample) {
      const std::int64_t row = rows / samples * sample;
      const double value = tensor.at(row / (H * N), row / N % H, row % N, sample % D);
      add(&value, sizeof value);
    }
  }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325u;
};

}  // namespace

int owner_of_part(std::int64_t part, std::int64_t parts, int members) {
  const std::int64_t run = part * 2 * members / parts;  // of 2P
  return static_cast<int>(std::min<std::int64_t>(run, 2 * members - 1 - run));
}

bool is_mine(const Team* team, std::int64_t part, std::int64_t parts) {
  return team == nullptr || owner_of_part(part, parts, team->size()) == team->rank();
}

void together(const Team* team, const std::function<void()>& action) {
  if (team == nullptr) return action();
  std::string complaint;
  try {
    action();
  } catch (const BadInput& error) {
    complaint = error.what();
  }
  const std::vector<std::string> all = team->gather(complaint);
  const auto first = std::ranges::find_if(all, [](const auto& text) { return !text.empty(); });
  if (first == all.end()) return;
  const bool shared = std::ranges::all_of(all, [&](const auto& text) { return text == *first; });
  throw BadInput(shared ? *first : "rank " + std::to_string(first - all.begin()) + ": " + *first);
}

void require_same(const Team* team, const std::string& value, const std::string& complaint) {
  if (team == nullptr) return;
  const std::string first = team->gather(value).front();
  together(team, [&] {
    if (value != first) throw BadInput(complaint);
  });
}

std::uint64_t digest_of(const Case& input) {
  const Problem& problem = input.problem;
  Digest digest;
  digest.add(input.name);
  digest.add(to_json(problem.spec));
  for (const Tensor* tensor :
       {&problem.q, &problem.k, &problem.v, &problem.bias, &problem.mask, &problem.alibi_slopes,
        &problem.sinks, &problem.q_scale.tensor, &problem.k_scale.tensor, &problem.v_scale.tensor,
        &input.dout, &input.dlse}) {
    digest.add(*tensor);
  }
  for (const Answer& answer : input.answers) {
    digest.add(name(answer.kind));
    digest.add(answer.tensor);
  }
  const auto add_list = [&](const auto& list) {
    digest.add(list.data(), list.size() * sizeof list[0]);
  };
  add_list(problem.key_length);
  add_list(problem.position_q);
  add_list(problem.position_k);
  add_list(problem.document_q);
  add_list(problem.document_k);
  return digest.value();
}

}  // namespace ringproof::oracle
