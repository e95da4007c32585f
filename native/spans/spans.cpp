// spans.cpp - times named regions of Python code into one tree a thread; the module hotloop.core._spans.
//
//   forest -> Tree (one a thread) -> root Node -> Node ...      what was timed, by path
//                                 -> stack of Frame             the spans that are open now
//
// Agrees with src/hotloop/core/spans_python.py, which says the same in Python. Everything here runs under
// the GIL, which makes each function one step to the other threads; none calls Python while it holds a
// reference into a tree, because Python may switch threads.

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace {

struct Node {
  PyObject* name = nullptr;  // borrowed from `regions`, which keeps every name; equal names are one object
  int64_t calls = 0;
  int64_t total_ns = 0;
  std::vector<std::unique_ptr<Node>> children;

  Node* child(PyObject* wanted) {
    for (auto& candidate : children)
      if (candidate->name == wanted) return candidate.get();
    children.push_back(std::make_unique<Node>());
    children.back()->name = wanted;
    return children.back().get();
  }
};

struct Frame {
  Node* node;
  int64_t start_ns;
  int64_t covered_ns;  // time that closed children and marks have taken
  uint64_t serial;     // tells a frame from an earlier one at the same depth
};

struct Tree {
  Node root;
  std::vector<Frame> stack{Frame{&root, 0, 0, 0}};  // the first frame is the thread itself
  uint64_t opened = 0;
};

// Enabling begins a new epoch and frees all trees; whoever points into a tree remembers its epoch.
std::vector<std::unique_ptr<Tree>> forest;
uint64_t epoch = 1;
bool running = false;
int64_t stopped_ns = 0;
PyObject* regions = nullptr;  // dict: name -> Region, for every name there ever was

struct Here {
  uint64_t epoch = 0;
  Tree* tree = nullptr;
};
thread_local Here here;

int64_t clock_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

int64_t time_ns() { return running ? clock_ns() : stopped_ns; }

Tree* own_tree() {
  if (here.epoch != epoch) {
    forest.push_back(std::make_unique<Tree>());
    here = Here{epoch, forest.back().get()};
  }
  return here.tree;
}

void open_span(PyObject* name) {
  Tree* tree = own_tree();
  Node* node = tree->stack.back().node->child(name);
  node->calls += 1;
  tree->stack.push_back(Frame{node, clock_ns(), 0, ++tree->opened});
}

// Closes the innermost open span of this name and whatever is still open inside it.
void close_span(PyObject* name) {
  if (here.epoch != epoch) return;
  auto& stack = here.tree->stack;
  const int64_t now = time_ns();
  size_t depth = stack.size() - 1;
  while (depth > 0 && stack[depth].node->name != name) depth -= 1;
  while (depth > 0 && stack.size() > depth) {
    const Frame frame = stack.back();
    stack.pop_back();
    frame.node->total_ns += now - frame.start_ns;
    stack.back().covered_ns += now - frame.start_ns;
  }
}

// What span(name) gives: enters and leaves a region of one name, in any thread, any number of times.
struct Region {
  PyObject_HEAD PyObject* name;
};
PyTypeObject* region_type = nullptr;

PyObject* region_name(PyObject* self, void* = nullptr) {
  return Py_NewRef(reinterpret_cast<Region*>(self)->name);
}

PyObject* region_enter(PyObject* self, PyObject*) {
  if (running) open_span(reinterpret_cast<Region*>(self)->name);
  return Py_NewRef(self);
}

PyObject* region_exit(PyObject* self, PyObject* const*, Py_ssize_t) {
  close_span(reinterpret_cast<Region*>(self)->name);
  Py_RETURN_NONE;
}

// The decorator is Python's: wrapping a function is not hot, and functools does it well.
PyObject* region_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"function", nullptr};
  PyObject* function = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O", const_cast<char**>(names), &function)) return nullptr;
  PyObject* module = PyImport_ImportModule("hotloop.core.timed");
  if (module == nullptr) return nullptr;
  PyObject* wrapped = PyObject_CallMethod(module, "timed", "OO", self, function);
  Py_DECREF(module);
  return wrapped;
}

void region_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_DECREF(reinterpret_cast<Region*>(self)->name);
  PyObject_Free(self);
  Py_DECREF(type);
}

bool is_name(PyObject* name) {
  const Py_ssize_t length = PyUnicode_GetLength(name);
  if (length > 0 && PyUnicode_FindChar(name, '/', 0, length, 1) == -1) return true;
  PyErr_SetString(PyExc_ValueError,
                  "the name of a span is not empty and has no '/', which joins the names of a path");
  return false;
}

PyObject* new_region(PyObject* name) {
  if (!is_name(name)) return nullptr;
  Region* region = PyObject_New(Region, region_type);
  if (region == nullptr) return nullptr;
  region->name = Py_NewRef(name);
  if (PyDict_SetItem(regions, name, reinterpret_cast<PyObject*>(region)) < 0) Py_CLEAR(region);
  return reinterpret_cast<PyObject*>(region);
}

// span(name): the region of a name; the same object each time.
PyObject* span(PyObject*, PyObject* name) {
  if (!PyUnicode_CheckExact(name)) {
    PyErr_SetString(PyExc_TypeError, "a span is named by a str");
    return nullptr;
  }
  PyObject* found = PyDict_GetItemWithError(regions, name);
  if (found != nullptr) return Py_NewRef(found);
  return PyErr_Occurred() ? nullptr : new_region(name);
}

// Where the marks of one thread stand.
struct Chain {
  Tree* tree = nullptr;
  uint64_t serial = 0;  // of the frame it lives in
  Node* parent = nullptr;
  int64_t last_ns = 0;
  int64_t covered_ns = 0;
  std::vector<Node*> nodes;  // one a slot, children of parent
};

struct Marks {
  PyObject_HEAD PyObject* names;  // tuple of the str objects in `regions`
  uint64_t epoch;                 // of the chains
  std::vector<Chain> chains;      // one a thread
};

Chain* own_chain(Marks* marks, Tree* tree) {
  if (marks->epoch != epoch) {
    marks->chains.clear();
    marks->epoch = epoch;
  }
  for (auto& chain : marks->chains)
    if (chain.tree == tree) return &chain;
  marks->chains.emplace_back();
  return &marks->chains.back();
}

void begin_chain(Marks* marks, Chain* chain, Tree* tree) {
  const Frame& frame = tree->stack.back();
  if (chain->parent != frame.node) {
    chain->nodes.clear();
    for (Py_ssize_t slot = 0; slot < PyTuple_GET_SIZE(marks->names); ++slot)
      chain->nodes.push_back(frame.node->child(PyTuple_GET_ITEM(marks->names, slot)));
  }
  chain->tree = tree;
  chain->serial = frame.serial;
  chain->parent = frame.node;
  chain->covered_ns = frame.covered_ns;
  chain->last_ns = clock_ns();
}

// Charges the time since the last mark, less what spans and other marks took meanwhile. A mark whose own
// chain began before this one's last mark took some that was earlier, hence the zero.
void charge(Chain* chain, Frame* frame, size_t slot) {
  const int64_t now = clock_ns();
  const int64_t taken_ns = frame->covered_ns - chain->covered_ns;
  const int64_t own_ns = std::max<int64_t>(0, now - chain->last_ns - taken_ns);
  chain->nodes[slot]->calls += 1;
  chain->nodes[slot]->total_ns += own_ns;
  frame->covered_ns += own_ns;
  chain->covered_ns = frame->covered_ns;
  chain->last_ns = now;
}

PyObject* marks_start(PyObject* self, PyObject*) {
  Marks* marks = reinterpret_cast<Marks*>(self);
  if (running) {
    Tree* tree = own_tree();
    begin_chain(marks, own_chain(marks, tree), tree);
  }
  Py_RETURN_NONE;
}

// mark(slot): the first mark in a span only begins a chain there.
PyObject* marks_mark(PyObject* self, PyObject* slot_object) {
  Marks* marks = reinterpret_cast<Marks*>(self);
  const Py_ssize_t slot = PyLong_AsSsize_t(slot_object);
  if (slot == -1 && PyErr_Occurred()) return nullptr;
  if (slot < 0 || slot >= PyTuple_GET_SIZE(marks->names))
    return PyErr_Format(PyExc_IndexError, "slot %zd of %zd marks", slot, PyTuple_GET_SIZE(marks->names));
  if (running) {
    Tree* tree = own_tree();
    Chain* chain = own_chain(marks, tree);
    Frame* frame = &tree->stack.back();
    if (chain->tree == tree && chain->serial == frame->serial)
      charge(chain, frame, static_cast<size_t>(slot));
    else
      begin_chain(marks, chain, tree);
  }
  Py_RETURN_NONE;
}

PyObject* marks_names(PyObject* self, void*) { return Py_NewRef(reinterpret_cast<Marks*>(self)->names); }

// A tuple of the names as `regions` holds them.
PyObject* canonical_names(PyObject* given) {
  if (PyUnicode_Check(given)) {
    PyErr_SetString(PyExc_TypeError, "marks are named by a sequence of str");
    return nullptr;
  }
  PyObject* items = PySequence_Tuple(given);
  if (items == nullptr) return nullptr;
  PyObject* names = PyTuple_New(PyTuple_GET_SIZE(items));
  for (Py_ssize_t i = 0; names != nullptr && i < PyTuple_GET_SIZE(items); ++i) {
    PyObject* region = span(nullptr, PyTuple_GET_ITEM(items, i));
    if (region == nullptr)
      Py_CLEAR(names);
    else
      PyTuple_SET_ITEM(names, i, region_name(region));
    Py_XDECREF(region);
  }
  Py_DECREF(items);
  return names;
}

PyObject* marks_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject* given = nullptr;
  if (kwargs != nullptr && PyDict_GET_SIZE(kwargs) > 0) {
    PyErr_SetString(PyExc_TypeError, "Marks takes no keyword arguments");
    return nullptr;
  }
  if (!PyArg_ParseTuple(args, "O:Marks", &given)) return nullptr;
  PyObject* names = canonical_names(given);
  if (names == nullptr) return nullptr;
  Marks* marks = reinterpret_cast<Marks*>(type->tp_alloc(type, 0));
  if (marks == nullptr) {
    Py_DECREF(names);
    return nullptr;
  }
  marks->names = names;
  marks->epoch = 0;
  new (&marks->chains) std::vector<Chain>();
  return reinterpret_cast<PyObject*>(marks);
}

void marks_dealloc(PyObject* self) {
  Marks* marks = reinterpret_cast<Marks*>(self);
  PyTypeObject* type = Py_TYPE(self);
  marks->chains.~vector();
  Py_DECREF(marks->names);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* enable(PyObject*, PyObject*) {
  epoch += 1;
  forest.clear();
  running = true;
  Py_RETURN_NONE;
}

PyObject* disable(PyObject*, PyObject*) {
  stopped_ns = time_ns();
  running = false;
  Py_RETURN_NONE;
}

PyObject* enabled(PyObject*, PyObject*) { return PyBool_FromLong(running); }

// A copy of what a tree says, in which Python objects can be made.
struct Row {
  PyObject* name;
  int64_t calls;
  int64_t total_ns;
  std::vector<Row> children;
};

// The children of a node that were reached; those still open count up to now. A node at depth d is open
// if it is the node of frame d.
std::vector<Row> copy_rows(const Node& node, const std::vector<Frame>& stack, size_t depth, int64_t now) {
  std::vector<Row> rows;
  for (const auto& child : node.children) {
    if (child->calls == 0) continue;
    const bool is_open = depth < stack.size() && stack[depth].node == child.get();
    const int64_t open_ns = is_open ? now - stack[depth].start_ns : 0;
    rows.push_back(
        Row{child->name, child->calls, child->total_ns + open_ns, copy_rows(*child, stack, depth + 1, now)});
  }
  return rows;
}

// A tuple of (name, calls, total_ns, rows below).
PyObject* tuple_of(const std::vector<Row>& rows) {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(rows.size()));
  for (size_t i = 0; tuple != nullptr && i < rows.size(); ++i) {
    const Row& row = rows[i];
    PyObject* below = tuple_of(row.children);
    PyObject* item = nullptr;
    if (below != nullptr)
      item = Py_BuildValue("(OLLN)", row.name, static_cast<long long>(row.calls),
                           static_cast<long long>(row.total_ns), below);
    if (item == nullptr)
      Py_CLEAR(tuple);
    else
      PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), item);
  }
  return tuple;
}

PyObject* read(PyObject*, PyObject*) {
  std::vector<Row> rows;
  const int64_t now = time_ns();
  for (const auto& tree : forest)
    for (auto& row : copy_rows(tree->root, tree->stack, 1, now)) rows.push_back(std::move(row));
  return tuple_of(rows);
}

PyCFunction as_fastcall(PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef region_methods[] = {
    {"__enter__", region_enter, METH_NOARGS, "Open a span of this name, where spans are enabled."},
    {"__exit__", as_fastcall(region_exit), METH_FASTCALL, "Close the innermost open span of this name."},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef region_properties[] = {{"name", region_name, nullptr, "The name of the spans.", nullptr},
                                   {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot region_slots[] = {{Py_tp_methods, region_methods},
                              {Py_tp_getset, region_properties},
                              {Py_tp_call, reinterpret_cast<void*>(region_call)},
                              {Py_tp_dealloc, reinterpret_cast<void*>(region_dealloc)},
                              {0, nullptr}};

PyType_Spec region_spec = {"hotloop.core._spans.Region", sizeof(Region), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, region_slots};

PyMethodDef marks_methods[] = {
    {"start", marks_start, METH_NOARGS, "Begin a chain in the innermost open span."},
    {"mark", marks_mark, METH_O, "Charge the time since the last mark to a slot."},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef marks_properties[] = {{"names", marks_names, nullptr, "The names of the slots.", nullptr},
                                  {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot marks_slots[] = {{Py_tp_new, reinterpret_cast<void*>(marks_new)},
                             {Py_tp_dealloc, reinterpret_cast<void*>(marks_dealloc)},
                             {Py_tp_methods, marks_methods},
                             {Py_tp_getset, marks_properties},
                             {0, nullptr}};

PyType_Spec marks_spec = {"hotloop.core._spans.Marks", sizeof(Marks), 0, Py_TPFLAGS_DEFAULT, marks_slots};

PyMethodDef functions[] = {
    {"span", span, METH_O, "The region of a name; the same object each time."},
    {"enable", enable, METH_NOARGS, "Begin with an empty tree; spans that are open now are left out."},
    {"disable", disable, METH_NOARGS, "Stop the clock; the tree stays to be read."},
    {"enabled", enabled, METH_NOARGS, "Whether spans are being timed."},
    {"read", read, METH_NOARGS, "The outermost rows of every thread, those still open up to now."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef module_definition = {PyModuleDef_HEAD_INIT,
                                 "_spans",
                                 "Spans and marks, natively; see hotloop.core.spans.",
                                 -1,
                                 functions,
                                 nullptr,
                                 nullptr,
                                 nullptr,
                                 nullptr};

bool add_types(PyObject* module) {
  regions = PyDict_New();
  region_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&region_spec));
  PyObject* marks_type = PyType_FromSpec(&marks_spec);
  if (regions == nullptr || region_type == nullptr || marks_type == nullptr) return false;
  const int failed = PyModule_AddObjectRef(module, "Region", reinterpret_cast<PyObject*>(region_type)) |
                     PyModule_AddObjectRef(module, "Marks", marks_type);
  Py_DECREF(marks_type);
  return failed == 0;
}

}  // namespace

PyMODINIT_FUNC PyInit__spans() {
  PyObject* module = PyModule_Create(&module_definition);
  if (module != nullptr && !add_types(module)) Py_CLEAR(module);
  return module;
}
