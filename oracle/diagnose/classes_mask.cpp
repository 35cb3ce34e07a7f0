// Mistakes in what a query sees: MASK-OFF1, MASK-ALIGN, MASK-DROP, DOC-LEAK, POSITION, SENTINEL,
// EMPTY-ROW. Nearly all are other rules of visibility, written as a VisibleRule.
#include <cmath>
#include <limits>

#include "oracle/diagnose/table.hpp"

namespace ringproof::oracle {

namespace {

/// The parts of "may query i see key j", each of which can be wrong.
struct VisibleRule {
  bool documents = true, lengths = true, mask = true, causal = true, left = true, right = true;
  std::int64_t causal_shift = 0, left_shift = 0, right_shift = 0;
  std::int64_t query_shift = 0;  // of all positions
  bool exchanged_window = false;
};

struct Pair {
  std::int64_t b, h, i, j;
};

bool sees(const Problem& p, const Pair& pair, const VisibleRule& rule) {
  const auto& [b, h, i, j] = pair;
  const std::int32_t document = p.document_q[index(b * p.queries + i)];
  if (rule.documents && (document < 0 || document != p.document_k[index(b * p.keys + j)])) {
    return false;
  }
  if (rule.lengths && j >= p.key_length[index(b)]) return false;
  if (rule.mask && p.mask && p.mask.at(b, h, i, j) == 0) return false;
  const std::int64_t query = p.position_q[index(b * p.queries + i)] + rule.query_shift;
  const std::int64_t key = p.position_k[index(b * p.keys + j)];
  if (rule.causal && p.spec.causal != Causal::none && key > query + rule.causal_shift) return false;
  const std::int64_t left = rule.exchanged_window ? p.spec.window_right : p.spec.window_left;
  const std::int64_t right = rule.exchanged_window ? p.spec.window_left : p.spec.window_right;
  if (rule.left && left >= 0 && query - left - rule.left_shift > key) return false;
  if (rule.right && right >= 0 && key > query + right + rule.right_shift) return false;
  return !p.bias || p.bias.at(b, h, i, j) != -std::numeric_limits<double>::infinity();
}

Change seeing(const VisibleRule& rule) {
  return [rule](HeadChange& c) {
    c.visible = [&p = *c.problem, b = c.b, h = c.h, rule](std::int64_t i, std::int64_t j) {
      return sees(p, {b, h, i, j}, rule);
    };
  };
}

std::string signed_number(std::int64_t n) {
  return std::string(n > 0 ? "+" : "") + std::to_string(n);
}

void add_edges(const Subject& subject, Families& families) {
  const Spec& spec = subject.problem().spec;
  for (const std::int64_t shift : {1, -1, 2, -2}) {
    const std::string by = " edge off by " + signed_number(shift);
    VisibleRule causal, left, right, both;
    causal.causal_shift = left.left_shift = right.right_shift = shift;
    both.left_shift = both.right_shift = shift;
    if (spec.causal != Causal::none) {
      add(families, "MASK-OFF1", "the causal" + by, seeing(causal));
      VisibleRule all = causal;
      all.query_shift = shift;
      all.causal_shift = 0;
      add(families, "MASK-OFF1", "every position of a query off by " + signed_number(shift),
          seeing(all), "POSITION");
    }
    if (spec.window_left >= 0) add(families, "MASK-OFF1", "the window's left" + by, seeing(left));
    if (spec.window_right >= 0) {
      add(families, "MASK-OFF1", "the window's right" + by, seeing(right));
    }
    if (spec.window_left >= 0 && spec.window_right >= 0) {
      add(families, "MASK-OFF1", "both edges of the window off by " + signed_number(shift),
          seeing(both));
    }
  }
  VisibleRule exchanged;
  exchanged.exchanged_window = true;
  if (spec.window_left != spec.window_right) {
    add(families, "MASK-OFF1", "left and right of the window exchanged", seeing(exchanged));
  }
}

void add_alignment(const Subject& subject, Families& families) {
  const Problem& p = subject.problem();
  const bool masked =
      p.spec.causal != Causal::none || p.spec.window_left >= 0 || p.spec.window_right >= 0;
  if (!masked || p.queries == p.keys) return;
  for (const std::int64_t sign : {1, -1}) {
    VisibleRule rule;
    rule.query_shift = sign * (p.keys - p.queries);
    const bool to_top = (p.spec.causal == Causal::bottom_right) == (rule.query_shift < 0);
    add(families, "MASK-ALIGN",
        std::string("positions counted from the ") + (to_top ? "first" : "last") + " key (shift " +
            signed_number(rule.query_shift) + ")",
        seeing(rule));
    VisibleRule window;
    window.left_shift = -rule.query_shift;
    window.right_shift = rule.query_shift;
    if (p.spec.window_left >= 0 || p.spec.window_right >= 0) {
      add(families, "MASK-ALIGN",
          "the window alone counted from the other end (shift " + signed_number(rule.query_shift) +
              ")",
          seeing(window));
    }
  }
}

void add_dropped(const Subject& subject, Families& families) {
  const Problem& p = subject.problem();
  VisibleRule rule;
  rule.causal = false;
  if (p.spec.causal != Causal::none) {
    add(families, "MASK-DROP", "the causal mask is ignored", seeing(rule));
  }
  rule = {};
  rule.left = false;
  if (p.spec.window_left >= 0) {
    add(families, "MASK-DROP", "the window's left edge is ignored", seeing(rule));
  }
  rule.right = false;
  if (p.spec.window_left >= 0 || p.spec.window_right >= 0) {
    add(families, "MASK-DROP", "the window is ignored", seeing(rule));
  }
  rule.left = true;
  if (p.spec.window_right >= 0) {
    add(families, "MASK-DROP", "the window's right edge is ignored", seeing(rule));
  }
  if (has_documents(p)) {
    rule = {};
    rule.documents = false;
    add(families, "MASK-DROP", "document boundaries are ignored", seeing(rule), "DOC-LEAK");
    rule.causal = rule.left = rule.right = false;
    add(families, "DOC-LEAK", "document boundaries and order are ignored", seeing(rule),
        "MASK-DROP");
  }
  rule = {};
  rule.lengths = false;
  add(families, "MASK-DROP", "key lengths are ignored: padding is seen", seeing(rule), "PAD-LEAK");
  rule = {};
  rule.mask = false;
  if (p.mask) add(families, "MASK-DROP", "the mask tensor is ignored", seeing(rule));
  rule = {false, false, false, false, false, false, 0, 0, 0, 0, false};
  add(families, "MASK-DROP", "every key is seen", seeing(rule));
  if (p.mask) {
    add(families, "MASK-DROP", "the mask tensor means the opposite", [](HeadChange& c) {
      c.visible = [&q = *c.problem, b = c.b, h = c.h](std::int64_t i, std::int64_t j) {
        VisibleRule others;
        others.mask = false;
        return sees(q, {b, h, i, j}, others) && q.mask.at(b, h, i, j) == 0;
      };
    });
  }
}

/// Tiles above the diagonal are skipped, but the tile on the diagonal is not masked, or is lost.
void add_diagonal_tiles(const Subject& subject, Families& families) {
  const Problem& p = subject.problem();
  if (p.spec.causal == Causal::none) return;
  for (const std::int64_t size : tile_sizes(p.keys)) {
    if (size < 2) continue;
    const auto tile = [size](std::int64_t n) { return n >= 0 ? n / size : -1 - (-n - 1) / size; };
    const std::string of = tiles_of(size);
    add(families, "MASK-DROP", "the tile on the diagonal is not masked" + of,
        [tile](HeadChange& c) {
          c.visible = [&q = *c.problem, b = c.b, h = c.h, tile](std::int64_t i, std::int64_t j) {
            VisibleRule others;
            others.causal = false;
            return sees(q, {b, h, i, j}, others) &&
                   tile(q.position_k[index(b * q.keys + j)]) <=
                       tile(q.position_q[index(b * q.queries + i)]);
          };
        });
    add(
        families, "MASK-OFF1", "tiles that the diagonal enters are skipped" + of,
        [tile](HeadChange& c) {
          c.visible = [&q = *c.problem, b = c.b, before = c.visible, tile](std::int64_t i,
                                                                           std::int64_t j) {
            return before(i, j) && tile(q.position_k[index(b * q.keys + j)]) <
                                       tile(q.position_q[index(b * q.queries + i)]);
          };
        },
        "BLOCK-SKIP");
  }
}

/// Documents whose boundaries are read from the wrong table.
void add_documents(const Subject& subject, Families& families) {
  const Problem& p = subject.problem();
  if (p.batches != 1 || !has_documents(p)) return;
  const auto of_keys = [&p](std::int64_t n) {
    return n < p.keys ? p.document_k[index(n)] : std::int32_t{-2};
  };
  const auto of_queries = [&p](std::int64_t n) {
    return n < p.queries ? p.document_q[index(n)] : std::int32_t{-2};
  };
  // First row of the document of every row, by one table of documents.
  const auto starts = [](const auto& document, std::int64_t rows) {
    std::vector<std::int64_t> first(index(rows));
    for (std::int64_t n = 1; n < rows; ++n) {
      first[index(n)] = document(n) == document(n - 1) ? first[index(n - 1)] : n;
    }
    return first;
  };
  // Without order, or with positions that start anew where the wrong table says.
  const auto leaking = [&p, starts](auto query_document, auto key_document,
                                    bool ordered) -> Change {
    return [=, &p, first_q = starts(query_document, p.queries),
            first_k = starts(key_document, p.keys)](HeadChange& c) {
      c.visible = [=](std::int64_t i, std::int64_t j) {
        if (query_document(i) != key_document(j) || query_document(i) < 0) return false;
        return !ordered || j - first_k[index(j)] <= i - first_q[index(i)];
      };
    };
  };
  const bool ordered = p.spec.causal != Causal::none;
  add(families, "DOC-LEAK", "the keys' documents are cut where the queries' are",
      leaking(of_queries, of_queries, ordered));
  add(families, "DOC-LEAK", "the queries' documents are cut where the keys' are",
      leaking(of_keys, of_keys, ordered));
  for (const std::int64_t shift : {1, -1}) {
    const auto moved = [&p, shift](std::int64_t j) {
      return j + shift < 0 || j + shift >= p.keys ? std::int32_t{-2}
                                                  : p.document_k[index(j + shift)];
    };
    add(families, "DOC-LEAK", "document boundaries of the keys off by " + signed_number(-shift),
        leaking(of_queries, moved, false), "MASK-OFF1");
  }
  add(families, "DOC-LEAK", "a query also sees the document before its own", [&p](HeadChange& c) {
    c.visible = [&p, before = c.visible](std::int64_t i, std::int64_t j) {
      return before(i, j) || p.document_k[index(j)] + 1 == p.document_q[index(i)];
    };
  });
  add(
      families, "DOC-LEAK", "order counts over the whole row, not by document",
      [&p](HeadChange& c) {
        c.visible = [&p](std::int64_t i, std::int64_t j) {
          return p.document_q[index(i)] == p.document_k[index(j)] && j <= i + p.keys - p.queries;
        };
      },
      "MASK-ALIGN");
}

/// Positions of a ring taken for something else: local rows, rank order, plain places.
void add_positions(const Subject& subject, Families& families) {
  const Problem& p = subject.problem();
  const bool ordered =
      p.spec.causal != Causal::none || p.spec.window_left >= 0 || p.spec.window_right >= 0;
  if (!ordered) return;
  const auto rule_of = [](const Problem& q, std::int64_t query, std::int64_t key) {
    if (q.spec.causal != Causal::none && key > query) return false;
    if (q.spec.window_left >= 0 && query - q.spec.window_left > key) return false;
    return q.spec.window_right < 0 || key <= query + q.spec.window_right;
  };
  const auto by_numbers = [&p, rule_of](std::function<std::int64_t(std::int64_t)> query,
                                        std::function<std::int64_t(std::int64_t)> key) -> Change {
    return [&p, rule_of, query = std::move(query), key = std::move(key)](HeadChange& c) {
      c.visible = [&p, rule_of, query, key](std::int64_t i, std::int64_t j) {
        return rule_of(p, query(i), key(j));
      };
    };
  };
  const auto place = [](std::int64_t n) { return n; };
  add(families, "POSITION", "places in the file are taken for positions", by_numbers(place, place));
  add(families, "POSITION", "places are taken for positions, queries from the end",
      by_numbers([&p](std::int64_t i) { return i + p.keys - p.queries; }, place));
  for (const Sharing& sharing : sharings(subject)) {
    if (p.queries != p.keys || p.batches != 1) continue;
    // Local row and place in rank order of every position.
    std::vector<std::int64_t> local(index(p.keys)), rank_order(index(p.keys));
    std::int64_t next = 0;
    for (std::int64_t rank = 0; rank < sharing.ranks; ++rank) {
      std::int64_t row = 0;
      for (std::int64_t x = 0; x < p.keys; ++x) {
        if (sharing.key_rank(0, x) != rank) continue;
        local[index(x)] = row++;
        rank_order[index(x)] = next++;
      }
    }
    const auto read = [](std::vector<std::int64_t> table) {
      return [table = std::move(table)](std::int64_t n) { return table[index(n)]; };
    };
    const std::string in = std::string(" (") + sharing.name + ")";
    add(families, "MASK-OFF1", "rows within a rank are compared, in every step" + in,
        by_numbers(read(local), read(local)), "POSITION");
    if (sharing.layout == RingLayout::contiguous) continue;
    add(families, "POSITION", "rank order is taken for positions, on both sides" + in,
        by_numbers(read(rank_order), read(rank_order)));
    add(families, "POSITION", "rank order is taken for positions of queries" + in,
        by_numbers(read(rank_order), place));
    add(families, "POSITION", "rank order is taken for positions of keys" + in,
        by_numbers(place, read(rank_order)));
  }
}

}  // namespace

void add_mask_classes(const Subject& subject, Families& families) {
  add_edges(subject, families);
  add_alignment(subject, families);
  add_dropped(subject, families);
  add_documents(subject, families);
  add_positions(subject, families);
  add_diagonal_tiles(subject, families);
}

}  // namespace ringproof::oracle
