// What the lists of mistakes share (table.hpp).
#include "oracle/diagnose/table.hpp"

#include <algorithm>

#include "oracle/contract/ring_partition.hpp"

namespace ringproof::oracle {

namespace {

/// Position if positions number the rows 0 .. N-1 once each, else the place in the tensor.
std::int64_t number_of(const std::vector<std::int64_t>& positions, std::int64_t b, std::int64_t n,
                       std::int64_t rows, std::int64_t length) {
  const std::int64_t position = positions[index(b * rows + n)];
  return position >= 0 && position < length ? position : std::min(n, length - 1);
}

}  // namespace

std::vector<std::int64_t> tile_sizes(std::int64_t keys) {
  constexpr std::int64_t kShort = 320, kLargest = 2048;
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = 1; size < keys && size <= kLargest; ++size) {
    const bool usual = size >= 16 && (size % 128 == 0 || (size & (size - 1)) == 0 ||
                                      (size < 256 && size % 16 == 0));
    if (usual || keys <= kShort) sizes.push_back(size);
  }
  // The usual ones first: of several that explain, the likeliest is printed.
  std::stable_partition(sizes.begin(), sizes.end(),
                        [](std::int64_t size) { return size >= 8 && (size & (size - 1)) == 0; });
  return sizes;
}

std::string tiles_of(std::int64_t size) { return " (tiles of " + std::to_string(size) + ")"; }

std::vector<Tiles> tiled_families(std::int64_t keys) {
  constexpr std::int64_t kMostTiles = 320;
  std::vector<Tiles> result;
  for (const std::int64_t size : tile_sizes(keys)) {
    const std::int64_t tiles = (keys + size - 1) / size;
    if (tiles > kMostTiles) continue;
    Family& family = result.emplace_back(Tiles{size, {}}).family;
    family.setting.part = [size](std::int64_t, std::int64_t, std::int64_t j) { return j / size; };
    family.setting.parts = tiles;
  }
  return result;
}

bool has_documents(const Problem& p) {
  const auto other = [](std::int32_t document) { return document != 0; };
  return std::any_of(p.document_q.begin(), p.document_q.end(), other) ||
         std::any_of(p.document_k.begin(), p.document_k.end(), other);
}

std::int64_t Sharing::owner(std::int64_t number, std::int64_t length) const {
  return stripe > 1 ? number / stripe % ranks : owner_of(layout, number, length, ranks);
}

std::int64_t Sharing::query_rank(std::int64_t b, std::int64_t i) const {
  const std::int64_t length = std::max(problem->queries, problem->keys);
  // A file that holds one rank's rows has fewer queries than the ring has keys.
  return owner(number_of(problem->position_q, b, i, problem->queries, length),
               problem->queries == problem->keys ? problem->queries : length);
}

std::int64_t Sharing::key_rank(std::int64_t b, std::int64_t j) const {
  return owner(number_of(problem->position_k, b, j, problem->keys, problem->keys), problem->keys);
}

std::vector<Sharing> sharings(const Subject& subject) {
  // Mistakes of single steps are a form each; beyond this no run of explain would end.
  constexpr std::int64_t kMostRanks = 256;
  if (subject.ranks < 2 || subject.ranks > kMostRanks) return {};
  const Problem& p = subject.problem();
  std::vector<Sharing> all;
  constexpr std::pair<RingLayout, const char*> kLayouts[] = {{RingLayout::contiguous, "contiguous"},
                                                             {RingLayout::zigzag, "zigzag"},
                                                             {RingLayout::striped, "striped"}};
  for (const auto& [layout, name] : kLayouts) {
    if (p.spec.ring && p.spec.ring->layout != layout) continue;
    all.push_back({layout, subject.ranks, name, &p});
  }
  return all;
}

std::vector<Sharing> wide_stripes(const Subject& subject) {
  const Problem& p = subject.problem();
  if (sharings(subject).empty() || p.spec.ring) return {};
  std::vector<Sharing> all;
  for (std::int64_t rows = 2; rows * subject.ranks < p.keys; rows *= 2) {
    if (p.keys % (rows * subject.ranks) != 0) continue;
    all.push_back({RingLayout::striped, subject.ranks, "striped", &p, rows});
  }
  return all;
}

}  // namespace ringproof::oracle
