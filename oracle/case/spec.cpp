// The spec of a case: every key of docs/formats.md, read into Spec, written from it, and joined
// where answer and problem lie in two files. Not here: what a contract may say (oracle/contract)
// and whether the tensors agree with the spec (assemble.cpp).
#include "oracle/case/spec.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "oracle/case/json_text.hpp"
#include "oracle/case/spec_entry.hpp"

namespace ringproof::oracle {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostRanks = 1 << 20;
constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();

const Words<AxisOrder> kLayouts{
    {"bhnd", AxisOrder::bhnd}, {"bnhd", AxisOrder::bnhd}, {"nhd", AxisOrder::nhd}};
const Words<Causal> kCausals{
    {"none", Causal::none}, {"top_left", Causal::top_left}, {"bottom_right", Causal::bottom_right}};
const Words<EmptyRow> kEmptyRows{
    {"zero", EmptyRow::zero}, {"nan", EmptyRow::nan}, {"any", EmptyRow::any}};
const Words<LseBase> kBases{{"e", LseBase::e}, {"2", LseBase::two}};
const Words<RingLayout> kRingLayouts{{"contiguous", RingLayout::contiguous},
                                     {"zigzag", RingLayout::zigzag},
                                     {"striped", RingLayout::striped}};
const Words<RingOrder> kRingOrders{{"down", RingOrder::down}, {"up", RingOrder::up}};

Ring read_ring(const SpecEntry& entry) {
  constexpr auto kWhat = "an object with \"layout\" and \"order\"";
  entry.object(kWhat);
  Ring ring;
  constexpr std::array<std::string_view, 2> kRingKeys{"layout", "order"};
  for (const auto& [name, value] : entry.value.items()) {
    const SpecEntry inner{entry.origin, "ring." + name, value};
    if (name == "layout") {
      ring.layout = inner.one_of(kRingLayouts);
    } else if (name == "order") {
      ring.order = inner.one_of(kRingOrders);
    } else {
      throw BadInput(entry.origin + ": unknown spec key " + in_quotes(inner.key) + " (nearest: " +
                     in_quotes("ring." + std::string(nearest(name, kRingKeys))) + ")");
    }
  }
  // Half a partition would have to be guessed, and a bound that rests on a guess proves nothing.
  if (entry.value.size() != 2) entry.refuse(kWhat);
  return ring;
}

void read_window(const SpecEntry& entry, Spec& spec) {
  if (!entry.value.is_array() || entry.value.size() != 2) entry.refuse("[left, right]");
  spec.window_left = SpecEntry{entry.origin, "window[0]", entry.value[0]}.integer(-1, kUnbounded);
  spec.window_right = SpecEntry{entry.origin, "window[1]", entry.value[1]}.integer(-1, kUnbounded);
}

void read_softcap(const SpecEntry& entry, Spec& spec) {
  spec.softcap = entry.number();
  if (spec.softcap < 0) entry.refuse("0 (off) or a positive number");
  spec.softcap += 0.0;  // "-0" is off, too
}

void read_base(const SpecEntry& entry, Spec& spec) {
  const bool two = entry.value.is_number_integer() && entry.value == 2;
  spec.lse_base = two ? LseBase::two : entry.one_of(kBases);
}

void read_contract(const SpecEntry& entry, Spec& spec) {
  if (!entry.value.is_string() && !entry.value.is_object()) entry.refuse("a name or an object");
  spec.contract = entry.value.is_object() ? entry.value.dump() : entry.text();
  // In Spec a brace marks the JSON text of an object, so a name cannot start with one.
  if (entry.value.is_string() && spec.contract.starts_with('{'))
    entry.refuse("a name or an object");
}

/// A key and what reads it. Keys of the problem can also be compared and copied, for the case that
/// answer and problem are two files; the others are the answer's.
struct Key {
  std::string_view name;
  void (*read)(const SpecEntry&, Spec&);
  bool (*equal)(const Spec&, const Spec&) = nullptr;
  void (*copy)(const Spec& from, Spec& to) = nullptr;
};

template <auto member>
constexpr bool same(const Spec& a, const Spec& b) {
  return a.*member == b.*member;
}
template <auto member>
constexpr void copy(const Spec& from, Spec& to) {
  to.*member = from.*member;
}

// clang-format off
constexpr std::array<Key, 14> kKeys{{
    {"version", [](const SpecEntry& e, Spec&) { e.integer(1, 1); }},
    {"layout", [](const SpecEntry& e, Spec& s) { s.layout = e.one_of(kLayouts); },
     same<&Spec::layout>, copy<&Spec::layout>},
    {"scale", [](const SpecEntry& e, Spec& s) { s.scale = e.number(); },
     same<&Spec::scale>, copy<&Spec::scale>},
    {"causal", [](const SpecEntry& e, Spec& s) { s.causal = e.one_of(kCausals); },
     same<&Spec::causal>, copy<&Spec::causal>},
    {"window", read_window,
     [](const Spec& a, const Spec& b) {
       return a.window_left == b.window_left && a.window_right == b.window_right;
     },
     [](const Spec& from, Spec& to) {
       to.window_left = from.window_left;
       to.window_right = from.window_right;
     }},
    {"softcap", read_softcap, same<&Spec::softcap>, copy<&Spec::softcap>},
    {"empty_row", [](const SpecEntry& e, Spec& s) { s.empty_row = e.one_of(kEmptyRows); },
     same<&Spec::empty_row>, copy<&Spec::empty_row>},
    {"lse_base", read_base},
    {"contract", read_contract},
    {"ranks", [](const SpecEntry& e, Spec& s) { s.ranks = e.integer(1, kMostRanks); }},
    {"ring", [](const SpecEntry& e, Spec& s) { s.ring = read_ring(e); }},
    {"problem", [](const SpecEntry& e, Spec& s) { s.problem = e.file_name(); }},
    {"problem_sha256", [](const SpecEntry& e, Spec& s) { s.problem_sha256 = e.sha256(); }},
    {"about", [](const SpecEntry& e, Spec&) { e.object(); }},
}};
// clang-format on

const Key* find_key(std::string_view name) {
  const auto* key =
      std::find_if(kKeys.begin(), kKeys.end(), [&](const Key& k) { return k.name == name; });
  return key == kKeys.end() ? nullptr : key;
}

[[noreturn]] void refuse_unknown(const std::string& name, const std::string& origin) {
  if (name == "v_from_k") {
    throw BadInput(origin + ": spec key \"v_from_k\" is reserved, not supported yet");
  }
  std::array<std::string_view, kKeys.size()> names;
  std::transform(kKeys.begin(), kKeys.end(), names.begin(),
                 [](const Key& key) { return key.name; });
  throw BadInput(origin + ": unknown spec key " + in_quotes(name) +
                 " (nearest: " + in_quotes(nearest(name, names)) + ")");
}

std::string hexadecimal(double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%a", value);
  return text.data();
}

}  // namespace

Spec parse_spec(const std::string& text, const std::string& origin, SpecKeys* keys) {
  const json root = parse_json(text, origin + ": spec");
  if (!root.is_object()) throw BadInput(origin + ": the spec is not a JSON object");
  Spec spec;
  for (const auto& [name, value] : root.items()) {
    const Key* key = find_key(name);
    if (key == nullptr) refuse_unknown(name, origin);
    key->read({origin, name, value}, spec);
    if (keys != nullptr) keys->insert(name);
  }
  if (!root.contains("version")) {
    throw BadInput(origin + ": spec key \"version\" is missing; this build reads version 1");
  }
  return spec;
}

Spec join_specs(const Spec& answer, const SpecKeys& answer_keys, const std::string& answer_origin,
                const Spec& problem, const SpecKeys& problem_keys,
                const std::string& problem_origin) {
  Spec joined = answer;
  for (const Key& key : kKeys) {
    if (key.equal == nullptr || problem_keys.count(std::string(key.name)) == 0) continue;
    if (answer_keys.count(std::string(key.name)) != 0 && !key.equal(answer, problem)) {
      throw BadInput(answer_origin + ": spec key " + in_quotes(key.name) +
                     " differs from the one in the problem file (" + problem_origin + ")");
    }
    key.copy(problem, joined);
  }
  return joined;
}

std::string to_json(const Spec& spec) {
  const Spec plain;
  json root;
  root["version"] = 1;
  if (spec.layout != plain.layout) root["layout"] = word_of(kLayouts, spec.layout);
  if (spec.scale) root["scale"] = hexadecimal(*spec.scale);
  if (spec.causal != plain.causal) root["causal"] = word_of(kCausals, spec.causal);
  if (spec.window_left >= 0 || spec.window_right >= 0) {
    root["window"] = {spec.window_left, spec.window_right};
  }
  if (spec.softcap != 0) root["softcap"] = hexadecimal(spec.softcap);
  if (spec.empty_row != plain.empty_row) root["empty_row"] = word_of(kEmptyRows, spec.empty_row);
  if (spec.lse_base) root["lse_base"] = word_of(kBases, *spec.lse_base);
  if (spec.contract.starts_with('{')) {
    root["contract"] = json::parse(spec.contract);
  } else if (!spec.contract.empty()) {
    root["contract"] = spec.contract;
  }
  if (spec.ranks) root["ranks"] = *spec.ranks;
  if (spec.ring) {
    root["ring"] = {{"layout", word_of(kRingLayouts, spec.ring->layout)},
                    {"order", word_of(kRingOrders, spec.ring->order)}};
  }
  if (!spec.problem.empty()) root["problem"] = spec.problem;
  if (!spec.problem_sha256.empty()) root["problem_sha256"] = spec.problem_sha256;
  return root.dump();
}

}  // namespace ringproof::oracle
