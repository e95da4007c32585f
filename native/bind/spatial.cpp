// spatial.cpp - an index of points for Python: batches of queries, and points that move.
#include "spatial/index.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include "engine/memory.h"

namespace nb = nanobind;

namespace hl::bind {
namespace {

using spatial::Box;
using spatial::Kind;

using Places = nb::ndarray<const float, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;
using Boxes = nb::ndarray<const float, nb::shape<-1, 4>, nb::c_contig, nb::device::cpu>;
using Ids = nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Kinds = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
nb::object as_array(std::vector<T>&& values) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), {kept->size()}, owner));
}

struct Counts {
  int64_t rebuilds = 0, partial_rebuilds = 0, queries = 0, stale_queries = 0, cells_touched = 0;
};

Box bounds_of(const float* places, size_t count) {
  if (count == 0) return {0, 0, 0, 0};
  Box box{places[0], places[1], places[0], places[1]};
  for (size_t k = 1; k < count; ++k) {
    box.left = std::min(box.left, places[2 * k]);
    box.right = std::max(box.right, places[2 * k]);
    box.top = std::min(box.top, places[2 * k + 1]);
    box.bottom = std::max(box.bottom, places[2 * k + 1]);
  }
  return box;
}

class PointIndex {
 public:
  PointIndex(uint32_t kind, Places places, Kinds kinds, float cell, bool immediate)
      : places_(places.data(), places.data() + places.size()),
        kinds_(kinds.data(), kinds.data() + kinds.size()),
        plan_(
            spatial::Plan::over(static_cast<Kind>(kind), count(), bounds_of(places_.data(), count()), cell)),
        memory_(plan_.bytes()),
        index_(plan_, memory_.data(), 0),
        is_dirty_(count(), 0),
        immediate_(immediate) {
    rebuild();
  }

  uint32_t count() const { return static_cast<uint32_t>(places_.size() / 2); }

  // Of the index itself, without the points.
  size_t bytes() const { return plan_.bytes(); }

  // Points go elsewhere: at once, or before the next query.
  void move(Ids ids, Places to) {
    for (size_t k = 0; k < ids.size(); ++k) {
      uint32_t id = ids.data()[k];
      places_[2 * id] = to.data()[2 * k];
      places_[2 * id + 1] = to.data()[2 * k + 1];
      if (!is_dirty_[id]) dirty_.push_back(id);
      is_dirty_[id] = 1;
      if (immediate_) flush();
    }
  }

  nb::tuple nearby(Places around, float reach, uint64_t wanted) {
    return collect(around.shape(0), [&](size_t k, auto found) {
      const float* at = around.data() + 2 * k;
      index_.nearby(at[0], at[1], reach, [&](uint32_t id, float) {
        if (is_wanted(id, wanted)) found(id);
      });
    });
  }

  nb::tuple range(Boxes boxes, uint64_t wanted) {
    return collect(boxes.shape(0), [&](size_t k, auto found) {
      const float* b = boxes.data() + 4 * k;
      Box box{b[0], b[1], b[2], b[3]};
      index_.candidates(box, [&](uint32_t id, float x, float y) {
        if (box.has(x, y) && is_wanted(id, wanted)) found(id);
      });
    });
  }

  // Ids, -1 where there is nobody, and distances.
  nb::tuple nearest(Places around, float reach, uint64_t wanted) {
    size_t total = around.shape(0);
    std::vector<int32_t> ids(total);
    std::vector<float> distances(total, std::numeric_limits<float>::infinity());
    {
      nb::gil_scoped_release released;
      prepare(total);
      for (size_t k = 0; k < total; ++k) {
        const float* at = around.data() + 2 * k;
        float least = 0;
        ids[k] = static_cast<int32_t>(
            index_.nearest(at[0], at[1], reach, [&](uint32_t id) { return is_wanted(id, wanted); }, least));
        if (ids[k] >= 0) distances[k] = std::sqrt(least);
      }
    }
    return nb::make_tuple(as_array(std::move(ids)), as_array(std::move(distances)));
  }

  nb::dict counters() const {
    nb::dict named;
    named["rebuilds"] = counts_.rebuilds;
    named["partial_rebuilds"] = counts_.partial_rebuilds;
    named["queries"] = counts_.queries;
    named["stale_queries"] = counts_.stale_queries;
    named["cells_touched"] = counts_.cells_touched;
    return named;
  }

 private:
  bool is_wanted(uint32_t id, uint64_t wanted) const { return kinds_.empty() || (wanted >> kinds_[id] & 1); }

  void prepare(size_t queries) {
    flush();
    counts_.queries += static_cast<int64_t>(queries);
    if (!dirty_.empty()) counts_.stale_queries += static_cast<int64_t>(queries);
  }

  // For each query where its ids begin, and all ids, those of a query in ascending order.
  template <class Query>
  nb::tuple collect(size_t total, Query query) {
    std::vector<int64_t> offsets(total + 1, 0);
    std::vector<int32_t> ids;
    {
      nb::gil_scoped_release released;
      prepare(total);
      ids.reserve(total * 12);
      for (size_t k = 0; k < total; ++k) {
        query(k, [&](uint32_t id) { ids.push_back(static_cast<int32_t>(id)); });
        std::sort(ids.begin() + offsets[k], ids.end());
        offsets[k + 1] = static_cast<int64_t>(ids.size());
      }
    }
    return nb::make_tuple(as_array(std::move(offsets)), as_array(std::move(ids)));
  }

  void rebuild() {
    index_.build(count(), [&](uint32_t k, uint32_t& id, float& x, float& y) {
      id = k, x = places_[2 * k], y = places_[2 * k + 1];
    });
    ++counts_.rebuilds;
    counts_.cells_touched += std::max(plan_.keys(), 1u);
  }

  // Sorts anew what moved: nothing where all stayed in their cells, else the run that holds all of them.
  void flush() {
    if (dirty_.empty()) return;
    if (plan_.kind == Kind::kdtree) {
      sort_node();
    } else {
      sort_run();
    }
    for (uint32_t id : dirty_) is_dirty_[id] = 0;
    dirty_.clear();
  }

  void sort_run() {
    uint32_t first = ~0u, last = 0;
    for (uint32_t id : dirty_) {
      uint32_t before = index_.key_at(index_.place(id)),
               now = index_.key(places_[2 * id], places_[2 * id + 1]);
      index_.put(index_.place(id), places_[2 * id], places_[2 * id + 1]);
      if (before == now) continue;
      first = std::min({first, before, now});
      last = std::max({last, before, now});
    }
    if (first > last) {
      counts_.cells_touched += static_cast<int64_t>(dirty_.size());
      return;
    }
    uint32_t begin, end;
    index_.run_of(first, last, begin, end);
    if (end - begin > count() / 2) return rebuild();
    index_.sort_run(first, last, begin, end);
    ++counts_.partial_rebuilds;
    counts_.cells_touched += plan_.keys() > 0 ? last - first + 1 : end - begin;
  }

  void sort_node() {
    Box region{places_[2 * dirty_[0]], places_[2 * dirty_[0] + 1], places_[2 * dirty_[0]],
               places_[2 * dirty_[0] + 1]};
    auto reach = [&](float x, float y) {
      region = {std::min(region.left, x), std::min(region.top, y), std::max(region.right, x),
                std::max(region.bottom, y)};
    };
    for (uint32_t id : dirty_) {
      uint32_t place = index_.place(id);
      reach(index_.x_at(place), index_.y_at(place));
      reach(places_[2 * id], places_[2 * id + 1]);
    }
    uint32_t begin, end;
    int axis;
    index_.node_of(region, begin, end, axis);
    if (end - begin == count()) return rebuild();
    for (uint32_t id : dirty_) index_.put(index_.place(id), places_[2 * id], places_[2 * id + 1]);
    index_.sort_node(begin, end, axis);
    ++counts_.partial_rebuilds;
    counts_.cells_touched += end - begin;
  }

  std::vector<float> places_;
  std::vector<uint8_t> kinds_;
  spatial::Plan plan_;
  Memory memory_;
  spatial::Index index_;
  std::vector<uint32_t> dirty_;
  std::vector<uint8_t> is_dirty_;
  bool immediate_;
  Counts counts_;
};

}  // namespace

void add_spatial(nb::module_& m) {
  nb::list names;
  for (const char* name : spatial::kind_names) names.append(name);
  m.attr("INDEX_KINDS") = nb::tuple(names);
  nb::class_<PointIndex>(m, "PointIndex")
      .def(nb::init<uint32_t, Places, Kinds, float, bool>())
      .def("move", &PointIndex::move)
      .def("nearby", &PointIndex::nearby)
      .def("range", &PointIndex::range)
      .def("nearest", &PointIndex::nearest)
      .def("bytes", &PointIndex::bytes)
      .def("counters", &PointIndex::counters);
}

}  // namespace hl::bind
