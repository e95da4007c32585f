// index.h - points in the plane, found by place: kinds of index over one memory, with the same answers.
//
//   grid      cells of equal size; points sorted by cell, so that a row of cells is one run
//   hash      the same cells in buckets of a table, for points that may lie anywhere
//   quadtree  points sorted along a Z-order curve; a node is a run of equal prefixes
//   kdtree    points around their median, by x and y in turn; a node is a run
//   brute     no order: every query looks at every point, what the others are measured against
//
// All memory is the caller's and sized by `bytes`. ids, xs, ys and keys are in the index's order. Queries
// visit a superset of what lies in a box; callers test distances, in float32, so that all kinds agree to the
// bit.
#pragma once

#include "engine/rules.h"

namespace hl::spatial {

enum class Kind : uint32_t { grid, hash, quadtree, kdtree, brute };

constexpr const char* kind_names[] = {"grid", "hash", "quadtree", "kdtree", "brute"};
constexpr uint32_t leaf = 8;    // points of a node that is not divided further
constexpr int axis_bits = 16;   // of a place on the curve
constexpr int most_open = 128;  // nodes on a search's way

// What lies within; the borders belong to it.
struct Box {
  float left, top, right, bottom;

  HL_FN bool has(float x, float y) const { return x >= left && x <= right && y >= top && y <= bottom; }
};

// How an index is made; plain data.
struct Plan {
  Kind kind;
  uint32_t capacity;
  float left, top, cell, scale;  // scale: steps of the curve a unit
  uint32_t columns, rows;
  uint32_t buckets;  // a power of two

  // For points in a box, with cells of about the given size.
  static Plan over(Kind kind, uint32_t capacity, Box box, float cell) {
    float width = box.right - box.left, height = box.bottom - box.top;
    float side = width > height ? width : height;
    constexpr float most_cells = 2048;
    cell = max(max(cell, side / most_cells), 1e-6f);
    Plan plan{kind, capacity, box.left, box.top, cell, side > 0 ? 65535.0f / side : 0.0f, 1, 1, 1};
    plan.columns = static_cast<uint32_t>(width / cell) + 1;
    plan.rows = static_cast<uint32_t>(height / cell) + 1;
    while (plan.buckets < capacity) plan.buckets *= 2;
    return plan;
  }

  HL_FN uint32_t keys() const {
    return kind == Kind::grid ? columns * rows : kind == Kind::hash ? buckets : 0;
  }
  HL_FN size_t bytes() const { return (keys() + 1 + size_t{7} * capacity) * sizeof(uint32_t); }
};

// Clamped, and monotone: a larger coordinate never has a smaller step.
HL_FN uint32_t steps(float at, float from, float per_unit, uint32_t last) {
  float step = (at - from) * per_unit;
  if (!(step > 0)) return 0;
  return step >= static_cast<float>(last) ? last : static_cast<uint32_t>(step);
}

HL_FN uint32_t spread_bits(uint32_t x) {
  x = (x | (x << 8)) & 0x00FF00FFu;
  x = (x | (x << 4)) & 0x0F0F0F0Fu;
  x = (x | (x << 2)) & 0x33333333u;
  return (x | (x << 1)) & 0x55555555u;
}

HL_FN int32_t unbounded_cell(float at, float cell) {
  float step = std::floor(at / cell);
  return static_cast<int32_t>(min(max(step, -1e9f), 1e9f));
}

class Index {
 public:
  HL_FN Index(const Plan& plan, std::byte* memory, uint32_t count)
      : plan_(plan), count_(count), start_(reinterpret_cast<uint32_t*>(memory)) {
    ids_ = start_ + plan.keys() + 1;
    keys_ = ids_ + plan.capacity;
    spare_ = keys_ + plan.capacity;
    spare_keys_ = spare_ + plan.capacity;
    xs_ = reinterpret_cast<float*>(spare_keys_ + plan.capacity);
    ys_ = xs_ + plan.capacity;
    where_ = reinterpret_cast<uint32_t*>(ys_ + plan.capacity);
  }

  HL_FN uint32_t count() const { return count_; }

  // From scratch; `point(k, id, x, y)` gives the k-th of `count` points, whose ids are below the capacity.
  template <class Point>
  HL_FN void build(uint32_t count, Point point) {
    count_ = count;
    if (plan_.kind == Kind::kdtree) {
      for (uint32_t k = 0; k < count; ++k) point(k, ids_[k], xs_[k], ys_[k]);
      build_tree(0, count, 0);
    } else if (plan_.kind == Kind::quadtree) {
      build_curve(0, count, point);
    } else if (plan_.kind == Kind::brute) {
      for (uint32_t k = 0; k < count; ++k) point(k, ids_[k], xs_[k], ys_[k]);
      std::memset(keys_, 0, count * sizeof(uint32_t));
    } else {
      build_cells(count, point);
    }
    for (uint32_t k = 0; k < count; ++k) where_[ids_[k]] = k;
  }

  // Visits ids with their places, in no order that a caller may rely on; a superset of what is in the box.
  template <class Visit>
  HL_FN void candidates(Box box, Visit visit) const {
    switch (plan_.kind) {
      case Kind::grid:
        return in_grid(box, visit);
      case Kind::hash:
        return in_table(box, visit);
      case Kind::quadtree:
        return on_curve(box, visit);
      case Kind::kdtree:
        return in_tree(box, visit);
      case Kind::brute:
        return visit_run(0, count_, visit);
    }
  }

  // Visits (id, square of the distance) of all within reach, its border included.
  template <class Visit>
  HL_FN void nearby(float x, float y, float reach, Visit visit) const {
    // Wider than any rounding of the test below.
    float wide = reach * 1.0001f + (std::abs(x) + std::abs(y)) * 1e-6f;
    float limit = reach * reach;
    candidates({x - wide, y - wide, x + wide, y + wide}, [&](uint32_t id, float px, float py) {
      float dx = px - x, dy = py - y;
      float away = dx * dx + dy * dy;
      if (away <= limit) visit(id, away);
    });
  }

  // The nearest that `accepts(id)` within reach, the lowest id of equals; -1 where there is none.
  template <class Accepts>
  HL_FN int64_t nearest(float x, float y, float reach, Accepts accepts, float& least) const {
    int64_t best = -1;
    // Where every point is looked at anyway, once is enough.
    float ring = plan_.kind == Kind::brute ? reach : min(plan_.cell, reach);
    while (true) {
      nearby(x, y, ring, [&](uint32_t id, float away) {
        bool better = best < 0 || away < least || (away == least && id < best);
        if (better && accepts(id)) {
          best = id;
          least = away;
        }
      });
      if (best >= 0 || ring >= reach) return best;
      ring = min(ring * 2, reach);
    }
  }

  // --- points that move ---------------------------------------------------------------------------

  // Where a point would be found: of two points with one key neither has to be sorted anew.
  HL_FN uint32_t key(float x, float y) const {
    switch (plan_.kind) {
      case Kind::grid: {
        uint32_t column = steps(x, plan_.left, 1 / plan_.cell, plan_.columns - 1);
        return steps(y, plan_.top, 1 / plan_.cell, plan_.rows - 1) * plan_.columns + column;
      }
      case Kind::hash:
        return bucket(unbounded_cell(x, plan_.cell), unbounded_cell(y, plan_.cell));
      case Kind::quadtree: {
        uint32_t across = steps(x, plan_.left, plan_.scale, (1u << axis_bits) - 1);
        uint32_t down = steps(y, plan_.top, plan_.scale, (1u << axis_bits) - 1);
        return spread_bits(across) | (spread_bits(down) << 1);
      }
      case Kind::kdtree:
      case Kind::brute:
        return 0;
    }
    return 0;
  }

  HL_FN uint32_t id_at(uint32_t place) const { return ids_[place]; }
  HL_FN uint32_t place(uint32_t id) const { return where_[id]; }
  HL_FN uint32_t key_at(uint32_t place) const { return keys_[place]; }
  HL_FN float x_at(uint32_t place) const { return xs_[place]; }
  HL_FN float y_at(uint32_t place) const { return ys_[place]; }
  HL_FN void put(uint32_t place, float x, float y) {
    xs_[place] = x;
    ys_[place] = y;
  }

  // Whether no query leaves the memory of whose points it is; for one that was handed in.
  bool is_sound() const {
    const uint32_t keys = plan_.keys();
    if (count_ > plan_.capacity || (keys > 0 && start_[keys] > count_)) return false;
    for (uint32_t k = 0; k < keys; ++k) {
      if (start_[k] > start_[k + 1]) return false;
    }
    return std::all_of(ids_, ids_ + count_, [&](uint32_t id) { return id < plan_.capacity; });
  }

  // The run of all points with keys from `first` to `last`, both included.
  HL_FN void run_of(uint32_t first, uint32_t last, uint32_t& begin, uint32_t& end) const {
    if (plan_.kind == Kind::quadtree) {
      begin = lower(0, count_, first);
      end = last == ~0u ? count_ : lower(begin, count_, last + 1);
    } else {
      begin = start_[first];
      end = start_[last + 1];
    }
  }

  // Sorts a run anew, whose points have moved but stay among the keys from `first` to `last`.
  HL_FN void sort_run(uint32_t first, uint32_t last, uint32_t begin, uint32_t end) {
    for (uint32_t k = begin; k < end; ++k) keys_[k] = key(xs_[k], ys_[k]);
    sort_keys(begin, end);
    if (plan_.kind != Kind::quadtree) {
      uint32_t at = begin;
      for (uint32_t one = first; one <= last; ++one) {
        start_[one] = at;
        while (at < end && keys_[at] == one) ++at;
      }
    }
    for (uint32_t k = begin; k < end; ++k) where_[ids_[k]] = k;
  }

  // The smallest node of the tree that a box lies in, and the axis it is divided by.
  HL_FN void node_of(Box box, uint32_t& begin, uint32_t& end, int& axis) const {
    begin = 0, end = count_, axis = 0;
    while (end - begin > leaf) {
      uint32_t middle = begin + (end - begin) / 2;
      float split = (axis == 0 ? xs_ : ys_)[middle];
      if ((axis == 0 ? box.right : box.bottom) < split) {
        end = middle;
      } else if ((axis == 0 ? box.left : box.top) > split) {
        begin = middle + 1;
      } else {
        return;
      }
      axis ^= 1;
    }
  }

  HL_FN void sort_node(uint32_t begin, uint32_t end, int axis) {
    build_tree(begin, end, axis);
    for (uint32_t k = begin; k < end; ++k) where_[ids_[k]] = k;
  }

 private:
  // --- cells and buckets ----------------------------------------------------------------------------

  HL_FN uint32_t bucket(int32_t column, int32_t row) const {
    uint64_t word = static_cast<uint64_t>(static_cast<uint32_t>(column)) << 32 | static_cast<uint32_t>(row);
    return static_cast<uint32_t>(scramble(word) & (plan_.buckets - 1));
  }

  // Counting sort.
  template <class Point>
  HL_FN void build_cells(uint32_t count, Point point) {
    uint32_t total = plan_.keys();
    std::memset(start_, 0, (total + 1) * sizeof(uint32_t));
    for (uint32_t k = 0; k < count; ++k) {
      uint32_t id;
      float x, y;
      point(k, id, x, y);
      spare_keys_[k] = key(x, y);
      ++start_[spare_keys_[k]];
    }
    uint32_t sum = 0;
    for (uint32_t c = 0; c <= total; ++c) start_[c] = sum += start_[c];
    for (uint32_t k = count; k-- > 0;) {
      uint32_t at = --start_[spare_keys_[k]];
      point(k, ids_[at], xs_[at], ys_[at]);
      keys_[at] = spare_keys_[k];
    }
  }

  template <class Visit>
  HL_FN void visit_run(uint32_t begin, uint32_t end, Visit& visit) const {
    for (uint32_t k = begin; k < end; ++k) visit(ids_[k], xs_[k], ys_[k]);
  }

  template <class Visit>
  HL_FN void in_grid(Box box, Visit& visit) const {
    float per_unit = 1 / plan_.cell;
    uint32_t first = steps(box.left, plan_.left, per_unit, plan_.columns - 1);
    uint32_t last = steps(box.right, plan_.left, per_unit, plan_.columns - 1);
    uint32_t top = steps(box.top, plan_.top, per_unit, plan_.rows - 1);
    uint32_t bottom = steps(box.bottom, plan_.top, per_unit, plan_.rows - 1);
    for (uint32_t row = top; row <= bottom; ++row) {
      const uint32_t* cells = start_ + row * plan_.columns;
      visit_run(cells[first], cells[last + 1], visit);
    }
  }

  template <class Visit>
  HL_FN void in_table(Box box, Visit& visit) const {
    int64_t first = unbounded_cell(box.left, plan_.cell), last = unbounded_cell(box.right, plan_.cell);
    int64_t top = unbounded_cell(box.top, plan_.cell), bottom = unbounded_cell(box.bottom, plan_.cell);
    if ((last - first + 1) * (bottom - top + 1) > count_) return visit_run(0, count_, visit);
    for (auto row = static_cast<int32_t>(top); row <= bottom; ++row) {
      for (auto column = static_cast<int32_t>(first); column <= last; ++column) {
        uint32_t found = bucket(column, row);
        for (uint32_t k = start_[found]; k < start_[found + 1]; ++k) {
          bool here =
              unbounded_cell(xs_[k], plan_.cell) == column && unbounded_cell(ys_[k], plan_.cell) == row;
          if (here) visit(ids_[k], xs_[k], ys_[k]);
        }
      }
    }
  }

  // --- the curve ----------------------------------------------------------------------------------

  template <class Point>
  HL_FN void build_curve(uint32_t begin, uint32_t end, Point point) {
    for (uint32_t k = begin; k < end; ++k) {
      point(k, ids_[k], xs_[k], ys_[k]);
      keys_[k] = key(xs_[k], ys_[k]);
    }
    sort_keys(begin, end);
  }

  // Radix sort, a byte at a time; stable. Places follow their keys.
  HL_FN void sort_keys(uint32_t begin, uint32_t end) {
    uint32_t total = end - begin;
    for (uint32_t k = 0; k < total; ++k) spare_[k] = begin + k;
    for (int shift = 0; shift < 32; shift += 8) {
      uint32_t counts[257] = {};
      for (uint32_t k = begin; k < end; ++k) ++counts[(keys_[k] >> shift & 255) + 1];
      for (int b = 0; b < 256; ++b) counts[b + 1] += counts[b];
      for (uint32_t k = 0; k < total; ++k) {
        uint32_t from = spare_[k];
        spare_keys_[counts[keys_[from] >> shift & 255]++] = from;
      }
      uint32_t* sorted = spare_keys_;
      spare_keys_ = spare_;
      spare_ = sorted;
    }
    gather(ids_ + begin, total, begin);
    gather(keys_ + begin, total, begin);
    gather(reinterpret_cast<uint32_t*>(xs_) + begin, total, begin);
    gather(reinterpret_cast<uint32_t*>(ys_) + begin, total, begin);
  }

  // Puts an array's run into the order that `spare_` has.
  HL_FN void gather(uint32_t* run, uint32_t total, uint32_t begin) {
    for (uint32_t k = 0; k < total; ++k) std::memcpy(spare_keys_ + k, run + (spare_[k] - begin), 4);
    std::memcpy(run, spare_keys_, total * sizeof(uint32_t));
  }

  HL_FN uint32_t lower(uint32_t begin, uint32_t end, uint32_t key) const {
    while (begin < end) {
      uint32_t middle = begin + (end - begin) / 2;
      if (keys_[middle] < key) {
        begin = middle + 1;
      } else {
        end = middle;
      }
    }
    return begin;
  }

  struct Square {
    uint32_t begin, end, column, row;  // the run, and its corner in steps of the curve
    int depth;                         // bits of each axis that are not decided
  };

  template <class Visit>
  HL_FN void on_curve(Box box, Visit& visit) const {
    constexpr uint32_t last = (1u << axis_bits) - 1;
    uint32_t left = steps(box.left, plan_.left, plan_.scale, last);
    uint32_t right = steps(box.right, plan_.left, plan_.scale, last);
    uint32_t top = steps(box.top, plan_.top, plan_.scale, last);
    uint32_t bottom = steps(box.bottom, plan_.top, plan_.scale, last);
    Square open[most_open];
    int opened = 0;
    open[opened++] = {0, count_, 0, 0, axis_bits};
    while (opened > 0) {
      Square one = open[--opened];
      uint32_t size = (1u << one.depth) - 1;
      bool apart = one.column > right || one.column + size < left || one.row > bottom || one.row + size < top;
      if (apart || one.begin == one.end) continue;
      if (one.depth == 0 || one.end - one.begin <= leaf) {
        visit_run(one.begin, one.end, visit);
        continue;
      }
      divide(one, open, opened);
    }
  }

  HL_FN void divide(const Square& one, Square* open, int& opened) const {
    int depth = one.depth - 1;
    uint32_t corner = spread_bits(one.column) | (spread_bits(one.row) << 1);
    uint32_t begin = one.begin;
    for (uint32_t quarter = 0; quarter < 4; ++quarter) {
      uint32_t next = corner + ((quarter + 1) << (2 * depth));
      uint32_t end = quarter == 3 ? one.end : lower(begin, one.end, next);
      uint32_t column = one.column + ((quarter & 1) << depth), row = one.row + ((quarter >> 1) << depth);
      open[opened++] = {begin, end, column, row, depth};
      begin = end;
    }
  }

  // --- the tree -----------------------------------------------------------------------------------

  struct Run {
    uint32_t begin, end;
    int axis;
  };

  HL_FN void build_tree(uint32_t begin, uint32_t end, int axis) {
    Run open[most_open];
    int opened = 0;
    open[opened++] = {begin, end, axis};
    while (opened > 0) {
      Run one = open[--opened];
      if (one.end - one.begin <= leaf) continue;
      uint32_t middle = one.begin + (one.end - one.begin) / 2;
      select(one.begin, one.end - 1, middle, one.axis == 0 ? xs_ : ys_);
      open[opened++] = {one.begin, middle, one.axis ^ 1};
      open[opened++] = {middle + 1, one.end, one.axis ^ 1};
    }
  }

  // Puts the median in its place, what is not above it before it and the others behind (Hoare).
  HL_FN void select(uint32_t first, uint32_t last, uint32_t wanted, const float* values) {
    while (first < last) {
      float pivot = values[first + (last - first) / 2];
      int64_t i = int64_t{first} - 1, j = int64_t{last} + 1;
      while (true) {
        do ++i;
        while (values[i] < pivot);
        do --j;
        while (values[j] > pivot);
        if (i >= j) break;
        exchange(static_cast<uint32_t>(i), static_cast<uint32_t>(j));
      }
      if (wanted <= j) {
        last = static_cast<uint32_t>(j);
      } else {
        first = static_cast<uint32_t>(j) + 1;
      }
    }
  }

  HL_FN void exchange(uint32_t a, uint32_t b) {
    uint32_t id = ids_[a];
    float x = xs_[a], y = ys_[a];
    ids_[a] = ids_[b], xs_[a] = xs_[b], ys_[a] = ys_[b];
    ids_[b] = id, xs_[b] = x, ys_[b] = y;
  }

  template <class Visit>
  HL_FN void in_tree(Box box, Visit& visit) const {
    Run open[most_open];
    int opened = 0;
    open[opened++] = {0, count_, 0};
    while (opened > 0) {
      Run one = open[--opened];
      if (one.end - one.begin <= leaf) {
        visit_run(one.begin, one.end, visit);
        continue;
      }
      uint32_t middle = one.begin + (one.end - one.begin) / 2;
      float split = (one.axis == 0 ? xs_ : ys_)[middle];
      visit(ids_[middle], xs_[middle], ys_[middle]);
      bool before = (one.axis == 0 ? box.left : box.top) <= split;
      bool behind = (one.axis == 0 ? box.right : box.bottom) >= split;
      if (before) open[opened++] = {one.begin, middle, one.axis ^ 1};
      if (behind) open[opened++] = {middle + 1, one.end, one.axis ^ 1};
    }
  }

  const Plan& plan_;
  uint32_t count_;
  uint32_t *start_, *ids_, *keys_, *spare_, *spare_keys_;
  float *xs_, *ys_;
  uint32_t* where_;
};

}  // namespace hl::spatial
