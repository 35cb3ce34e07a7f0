// Rows of drafts chosen anew, and drafts in words (draft.hpp).
#include "tests/suite/draft.hpp"

#include <cmath>
#include <numeric>
#include <stdexcept>

namespace ringproof::suite {
namespace {

/// Keeps entries order[n] of one axis; an axis of size 1 repeats one entry and stays.
void choose(Table& table, std::size_t axis, const std::vector<Index>& order) {
  if (axis >= table.shape.size()) throw std::logic_error("rows of a table of fewer axes");
  if (table.shape[axis] == 1 && table.shape.size() == 4) return;
  Index outer = 1, inner = 1;
  for (std::size_t n = 0; n < axis; ++n) outer *= table.shape[n];
  for (std::size_t n = axis + 1; n < table.shape.size(); ++n) inner *= table.shape[n];
  const Index rows = table.shape[axis];
  std::vector<double> chosen;
  for (Index o = 0; o < outer; ++o) {
    for (const Index row : order) {
      for (Index n = 0; n < inner; ++n) {
        chosen.push_back(table.values[static_cast<std::size_t>((o * rows + row) * inner + n)]);
      }
    }
  }
  table.shape[axis] = static_cast<Index>(order.size());
  table.values = std::move(chosen);
}

void choose_if_there(Draft& draft, const char* name, std::size_t axis,
                     const std::vector<Index>& order) {
  // An axis of scores with one row for all, or that has one row indeed, is told apart by the sizes.
  if (draft.has(name)) choose(draft.table(name), axis, order);
}

/// q, k, v, dout have no broadcast axes: one row is one row.
void choose_rows(Draft& draft, const char* name, const std::vector<Index>& order) {
  if (!draft.has(name)) return;
  Table& table = draft.table(name);
  if (table.shape[2] == 1 && order.size() == 1) return;
  if (table.shape[2] == 1) {
    Table wide = table;
    Index width = table.shape[3], heads = table.shape[0] * table.shape[1];
    wide.values.clear();
    for (Index head = 0; head < heads; ++head) {
      for (std::size_t n = 0; n < order.size(); ++n) {
        const auto first = table.values.begin() + head * width;
        wide.values.insert(wide.values.end(), first, first + width);
      }
    }
    wide.shape[2] = static_cast<Index>(order.size());
    table = std::move(wide);
    return;
  }
  choose(table, 2, order);
}

void make_positions_explicit(Draft& draft) {
  const Index offset =
      draft.spec.causal == oracle::Causal::bottom_right ? draft.keys - draft.queries : 0;
  const auto put = [&](const char* name, Index rows, Index first) {
    if (draft.has(name)) return;
    std::vector<double> positions;
    for (Index n = 0; n < rows; ++n) positions.push_back(static_cast<double>(first + n));
    draft.put(name, oracle::DType::i64, {rows}, std::move(positions));
  };
  put("positions_q", draft.queries, offset);
  put("positions_k", draft.keys, 0);
}

}  // namespace

double Draft::scale() const {
  return spec.scale.value_or(1 / std::sqrt(static_cast<double>(head_dim)));
}

void Draft::put(const std::string& name, oracle::DType dtype, std::vector<Index> shape,
                std::vector<double> values) {
  if (oracle::is_float(dtype)) {
    for (double& value : values) value = oracle::round_nearest(dtype, value);
  }
  tables[name] = Table{dtype, std::move(shape), std::move(values)};
}

bool by_position(const Draft& draft) {
  return draft.spec.causal != oracle::Causal::none || draft.spec.window_left >= 0 ||
         draft.spec.window_right >= 0 || draft.has("alibi_slopes");
}

std::vector<Index> ascending(Index count) {
  std::vector<Index> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), Index{0});
  return order;
}

Draft choose_keys(const Draft& from, const std::vector<Index>& order) {
  Draft draft = from;
  if (by_position(draft)) make_positions_explicit(draft);
  for (const char* name : {"k", "v"}) choose_rows(draft, name, order);
  for (const char* name : {"bias", "mask"}) choose_if_there(draft, name, 3, order);
  for (const char* name : {"positions_k", "documents_k"}) choose_if_there(draft, name, 0, order);
  draft.keys = static_cast<Index>(order.size());
  return draft;
}

Draft choose_queries(const Draft& from, const std::vector<Index>& order) {
  Draft draft = from;
  if (by_position(draft)) make_positions_explicit(draft);
  for (const char* name : {"q", "dout"}) choose_rows(draft, name, order);
  for (const char* name : {"bias", "mask"}) choose_if_there(draft, name, 2, order);
  choose_if_there(draft, "dlse", 2, order);
  for (const char* name : {"positions_q", "documents_q"}) choose_if_there(draft, name, 0, order);
  draft.queries = static_cast<Index>(order.size());
  return draft;
}

std::string describe(const Draft& draft) {
  const auto number = [](Index n) { return std::to_string(n); };
  const oracle::Spec& spec = draft.spec;
  std::string text = "B " + number(draft.batches) + " H " + number(draft.heads) + " Hkv " +
                     number(draft.kv_heads) + " Nq " + number(draft.queries) + " Nk " +
                     number(draft.keys) + " D " + number(draft.head_dim) + " Dv " +
                     number(draft.value_dim);
  if (spec.causal == oracle::Causal::top_left) text += ", causal top_left";
  if (spec.causal == oracle::Causal::bottom_right) text += ", causal bottom_right";
  if (spec.window_left >= 0 || spec.window_right >= 0) {
    text += ", window " + number(spec.window_left) + "," + number(spec.window_right);
  }
  if (spec.softcap > 0) text += ", softcap";
  if (spec.layout == oracle::AxisOrder::bnhd) text += ", bnhd";
  if (spec.layout == oracle::AxisOrder::nhd) text += ", nhd";
  for (const auto& [name, table] : draft.tables) {
    if (name.size() > 1) text += ", " + name;
  }
  if (spec.ranks) text += ", ranks " + number(*spec.ranks);
  if (spec.ring) {
    constexpr const char* kLayouts[] = {"contiguous", "zigzag", "striped"};
    text += std::string(" ") + kLayouts[static_cast<int>(spec.ring->layout)] +
            (spec.ring->order == oracle::RingOrder::up ? " up" : " down");
  }
  return text;
}

}  // namespace ringproof::suite
