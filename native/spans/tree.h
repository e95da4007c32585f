// tree.h - spans and marks without Python: a tree of what was timed and a stack of what is open, a thread.
//
//   Forest -> Tree (one a thread) -> root Node -> Node ...      what was timed, by path
//                                 -> stack of Frame             the spans that are open now
//
// Where it is asked for, a span also reads its thread's CPU clock, inside its two readings of the time. That
// is a call into the system and costs several marks, so no mark does it: rows of marks have no CPU time.
//
// Agrees with src/hotloop/core/spans/python.py. Nothing here is locked: the caller holds the GIL.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/clock.h"
#include "spans/log.h"

namespace hl::spans {

// Names are compared as pointers: whoever makes them makes equal ones once and keeps them.
using Name = const void*;

// Everything is kept in ticks, the cheapest clock there is, and becomes nanoseconds when it is read.
inline int64_t read_clock() { return static_cast<int64_t>(Clock::ticks()); }

inline int64_t to_ns(int64_t ticks) {
  return static_cast<int64_t>(static_cast<double>(ticks) * Clock::ns_per_tick());
}

constexpr int64_t unknown = -1;  // CPU time of what did not read it

// The CPU time of the calling thread in nanoseconds.
inline int64_t read_thread_clock() {
  timespec used;
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) != 0) return unknown;
  return static_cast<int64_t>(used.tv_sec) * 1'000'000'000 + used.tv_nsec;
}

struct Node {
  Name name = nullptr;
  int64_t calls = 0;
  int64_t total = 0;
  int64_t cpu_ns = 0;
  int64_t clocked = 0;  // calls that read their thread's clock, which marks never do; cpu_ns is theirs
  std::vector<std::unique_ptr<Node>> children;

  // Null where there is no such child yet.
  Node* find(Name wanted) const {
    for (const auto& candidate : children)
      if (candidate->name == wanted) return candidate.get();
    return nullptr;
  }

  Node* child(Name wanted) {
    if (Node* found = find(wanted)) return found;
    children.push_back(std::make_unique<Node>());
    children.back()->name = wanted;
    return children.back().get();
  }
};

struct Frame {
  Node* node;
  int64_t start;
  int64_t start_cpu;  // of the thread's clock
  int64_t covered;    // time that closed children and marks have taken
  uint64_t serial;    // tells a frame from an earlier one at the same depth

  // Where marks by name stand: the time of the last one, and what was covered then. A span is its own
  // first mark; a thread has none, and its first mark only begins.
  int64_t marked;
  int64_t covered_at_mark;
};

// A copy of a node in nanoseconds, with the time of a span still open.
struct Row {
  Name name;
  int64_t calls;
  int64_t total_ns;
  int64_t cpu_ns;  // unknown where not every call was clocked
  std::vector<Row> children;
};

struct Tree {
  explicit Tree(Log* shared) : log(shared) {}

  Log* log;
  Node root;
  std::vector<Frame> stack{Frame{&root, 0, unknown, 0, 0, 0, 0}};  // the first frame is the thread itself
  uint64_t opened = 0;

  void open(Name name, bool clocked) {
    Node* node = stack.back().node->child(name);
    node->calls += 1;
    const int64_t now = read_clock();
    const int64_t cpu = clocked ? read_thread_clock() : unknown;
    node->clocked += cpu != unknown;
    stack.push_back(Frame{node, now, cpu, 0, ++opened, now, 0});
  }

  // Charges the time since the last mark by name in the innermost open span, less what spans and other
  // marks took meanwhile, to a child of that span.
  void mark(Node* child) {
    Frame& frame = stack.back();
    const int64_t now = read_clock();
    if (frame.marked != 0) {
      const int64_t taken = frame.covered - frame.covered_at_mark;
      const int64_t own = std::max<int64_t>(0, now - frame.marked - taken);
      child->calls += 1;
      child->total += own;
      frame.covered += own;
      log->add(child, frame.marked, now, own);
    }
    frame.marked = now;
    frame.covered_at_mark = frame.covered;
  }

  // Closes the innermost open span of this name and whatever is still open inside it; `cpu` is what the
  // thread's clock showed then.
  void close(Name name, int64_t now, int64_t cpu) {
    size_t depth = stack.size() - 1;
    while (depth > 0 && stack[depth].node->name != name) depth -= 1;
    while (depth > 0 && stack.size() > depth) {
      const Frame frame = stack.back();
      stack.pop_back();
      frame.node->total += now - frame.start;
      if (cpu != unknown && frame.start_cpu != unknown)
        frame.node->cpu_ns += cpu - frame.start_cpu;
      else
        frame.node->clocked -= frame.start_cpu != unknown;
      stack.back().covered += now - frame.start;
      log->add(frame.node, frame.start, now, now - frame.start);
    }
  }

  std::vector<Row> rows(int64_t now, int64_t cpu) const { return rows_below(root, 1, now, cpu); }

 private:
  // The children that were reached; the one that is the node of frame `depth` is open.
  std::vector<Row> rows_below(const Node& node, size_t depth, int64_t now, int64_t cpu) const {
    std::vector<Row> rows;
    for (const auto& child : node.children) {
      if (child->calls == 0) continue;
      const bool is_open = depth < stack.size() && stack[depth].node == child.get();
      const int64_t open_ticks = is_open ? now - stack[depth].start : 0;
      rows.push_back({child->name, child->calls, to_ns(child->total + open_ticks),
                      cpu_of(*child, is_open ? &stack[depth] : nullptr, cpu),
                      rows_below(*child, depth + 1, now, cpu)});
    }
    return rows;
  }

  static int64_t cpu_of(const Node& node, const Frame* open, int64_t cpu) {
    if (node.clocked != node.calls) return unknown;
    if (open == nullptr) return node.cpu_ns;
    return cpu == unknown ? unknown : node.cpu_ns + cpu - open->start_cpu;
  }
};

// The trees of all threads since spans were enabled. Enabling begins a new epoch and frees the trees of
// the old one, so whoever points into a tree remembers the epoch it is of.
class Forest {
 public:
  bool running() const { return running_; }
  uint64_t epoch() const { return epoch_; }
  bool clocked() const { return clocked_; }
  int64_t time() const { return running_ ? read_clock() : stopped_; }

  // What the clock of a tree's thread shows, or showed when spans were stopped; unknown to other threads.
  int64_t cpu(const Tree* tree) const {
    if (!running_) return tree == stopper_ ? stopped_cpu_ : unknown;
    return clocked_ && tree == own() ? read_thread_clock() : unknown;
  }

  void enable(bool clocked) {
    epoch_ += 1;
    trees_.clear();
    log_.clear();
    stopper_ = nullptr;
    clocked_ = clocked;
    running_ = true;
  }

  Log& log() { return log_; }
  const std::vector<std::unique_ptr<Tree>>& trees() const { return trees_; }

  void disable() {
    if (!running_) return;
    stopper_ = own();
    stopped_cpu_ = cpu(stopper_);
    stopped_ = time();
    running_ = false;
  }

  // The tree of the calling thread, which may not have one yet.
  Tree* tree() {
    if (here_.epoch != epoch_) {
      trees_.push_back(std::make_unique<Tree>(&log_));
      here_ = {epoch_, trees_.back().get()};
    }
    return here_.tree;
  }

  void close(Name name) {
    if (own() == nullptr) return;
    const int64_t used = cpu(here_.tree);
    here_.tree->close(name, time(), used);
  }

  std::vector<Row> rows() const {
    std::vector<Row> all;
    for (const auto& tree : trees_)
      for (auto& row : rows_of(tree.get())) all.push_back(std::move(row));
    return all;
  }

  std::vector<Row> rows_of(const Tree* tree) const {
    const int64_t used = cpu(tree);
    return tree->rows(time(), used);
  }

 private:
  struct Here {
    uint64_t epoch;
    Tree* tree;
  };
  static inline thread_local Here here_{0, nullptr};

  // The tree of the calling thread; null where it has none yet.
  Tree* own() const { return here_.epoch == epoch_ ? here_.tree : nullptr; }

  Log log_;
  std::vector<std::unique_ptr<Tree>> trees_;
  uint64_t epoch_ = 1;
  bool running_ = false;
  bool clocked_ = false;  // whether spans read their thread's clock
  int64_t stopped_ = 0;
  int64_t stopped_cpu_ = unknown;  // of the thread that stopped, whose tree is:
  const Tree* stopper_ = nullptr;
};

// The nodes of all trees, parents before their children, numbered from 0.
struct Place {
  const Node* node;
  int64_t thread;
  int64_t parent;  // -1 for the outermost
};

inline void list_below(const Node& node, int64_t thread, int64_t parent, std::vector<Place>& places) {
  for (const auto& child : node.children) {
    places.push_back({child.get(), thread, parent});
    list_below(*child, thread, static_cast<int64_t>(places.size()) - 1, places);
  }
}

inline std::vector<Place> list_places(const Forest& forest) {
  std::vector<Place> places;
  for (size_t thread = 0; thread < forest.trees().size(); ++thread)
    list_below(forest.trees()[thread]->root, static_cast<int64_t>(thread), -1, places);
  return places;
}

// Where the marks of one thread stand.
struct Chain {
  Tree* tree = nullptr;
  uint64_t serial = 0;  // of the frame it lives in
  Node* parent = nullptr;
  int64_t last = 0;
  int64_t covered = 0;
  std::vector<Node*> nodes;  // one a slot, children of parent

  bool lives_in(const Frame& frame) const { return parent == frame.node && serial == frame.serial; }

  void begin(Tree* own, const std::vector<Name>& names) {
    const Frame& frame = own->stack.back();
    if (parent != frame.node) {
      nodes.clear();
      for (Name name : names) nodes.push_back(frame.node->child(name));
    }
    tree = own;
    serial = frame.serial;
    parent = frame.node;
    covered = frame.covered;
    last = read_clock();
  }

  // Charges the time since the last mark, less what spans and other marks took meanwhile. A mark whose
  // own chain began before this one's last mark took some that was earlier, hence the zero.
  void charge(size_t slot, Frame* frame) {
    const int64_t now = read_clock();
    const int64_t taken = frame->covered - covered;
    const int64_t own = std::max<int64_t>(0, now - last - taken);
    nodes[slot]->calls += 1;
    nodes[slot]->total += own;
    frame->covered += own;
    covered = frame->covered;
    tree->log->add(nodes[slot], last, now, own);
    last = now;
  }
};

// Named slots with a chain for each thread that marks them.
class Slots {
 public:
  explicit Slots(std::vector<Name> names) : names_(std::move(names)) {}

  size_t count() const { return names_.size(); }

  void start(Forest& forest) {
    Tree* tree = forest.tree();
    chain_of(tree, forest.epoch())->begin(tree, names_);
  }

  // The first mark in a span only begins a chain there.
  void mark(Forest& forest, size_t slot) {
    Tree* tree = forest.tree();
    Chain* chain = chain_of(tree, forest.epoch());
    Frame* frame = &tree->stack.back();
    if (chain->lives_in(*frame))
      chain->charge(slot, frame);
    else
      chain->begin(tree, names_);
  }

 private:
  Chain* chain_of(Tree* tree, uint64_t epoch) {
    if (epoch_ != epoch) chains_.clear();
    epoch_ = epoch;
    for (auto& chain : chains_)
      if (chain.tree == tree) return &chain;
    chains_.emplace_back();
    return &chains_.back();
  }

  std::vector<Name> names_;
  std::vector<Chain> chains_;
  uint64_t epoch_ = 0;  // of the chains
};

}  // namespace hl::spans
