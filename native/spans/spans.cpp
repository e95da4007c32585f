// spans.cpp - the Python module hotloop.core._spans: regions, marks and the tree they are timed into.
//
// Plain CPython, because a mark has to cost little more than its clock read. Every function runs under the
// GIL and so is one step to the other threads; none calls Python while it points into a tree, because
// Python may switch threads there. A watcher is told of a boundary before the clock is read, so that what it
// does on a device is inside the region.

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <new>
#include <unordered_map>
#include <utility>

#include "spans/tree.h"

namespace {

using namespace hl::spans;

Forest forest;
PyObject* regions = nullptr;  // dict: name -> Region; keeps every name there ever was, so nodes may borrow

// Who is told of every boundary, by its bound methods: they are looked up once. Null is nobody.
struct Watcher {
  PyObject *open, *close, *mark, *start;
};
Watcher watcher{};

// Whether the watcher took it, or there is none; `name` may be null.
bool tell(PyObject* Watcher::* what, PyObject* name) {
  if (watcher.*what == nullptr) return true;
  PyObject* told = Py_NewRef(watcher.*what);  // it may be replaced while it is called
  PyObject* done = name == nullptr ? PyObject_CallNoArgs(told) : PyObject_CallOneArg(told, name);
  Py_DECREF(told);
  Py_XDECREF(done);
  return done != nullptr;
}

PyObject* watch(PyObject*, PyObject* given) {
  Watcher now{};
  const bool somebody = given != Py_None;
  for (auto [what, name] : {std::pair{&Watcher::open, "open"},
                            {&Watcher::close, "close"},
                            {&Watcher::mark, "mark"},
                            {&Watcher::start, "start"}}) {
    if (somebody && (now.*what = PyObject_GetAttrString(given, name)) == nullptr) {
      for (PyObject* each : {now.open, now.close, now.mark, now.start}) Py_XDECREF(each);
      return nullptr;
    }
  }
  std::swap(watcher, now);
  for (PyObject* each : {now.open, now.close, now.mark, now.start}) Py_XDECREF(each);
  Py_RETURN_NONE;
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
  PyObject* name = reinterpret_cast<Region*>(self)->name;
  if (!tell(&Watcher::open, name)) return nullptr;
  if (forest.running()) forest.tree()->open(name, forest.clocked());
  return Py_NewRef(self);
}

PyObject* region_exit(PyObject* self, PyObject* const*, Py_ssize_t) {
  PyObject* name = reinterpret_cast<Region*>(self)->name;
  const bool told = tell(&Watcher::close, name);
  forest.close(name);
  if (!told) return nullptr;
  Py_RETURN_NONE;
}

// The decorator is Python's: wrapping a function is not hot, and functools does it well.
PyObject* region_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"function", nullptr};
  PyObject* function = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O", const_cast<char**>(names), &function)) return nullptr;
  PyObject* module = PyImport_ImportModule("hotloop.core.spans.device");
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

PyObject* span(PyObject*, PyObject* name) {
  if (!PyUnicode_CheckExact(name)) {
    PyErr_SetString(PyExc_TypeError, "a span is named by a str");
    return nullptr;
  }
  PyObject* found = PyDict_GetItemWithError(regions, name);
  if (found != nullptr) return Py_NewRef(found);
  return PyErr_Occurred() ? nullptr : new_region(name);
}

// span(name, device=True): what a GPU does in a region is Python's, too, since only torch knows it.
PyObject* span_asked(PyObject* module, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  if (count == 1 && names == nullptr) return span(module, args[0]);
  PyObject* device = PyImport_ImportModule("hotloop.core.spans.device");
  if (device == nullptr) return nullptr;
  PyObject* asked = PyObject_GetAttrString(device, "device_span");
  Py_DECREF(device);
  if (asked == nullptr) return nullptr;
  PyObject* made = PyObject_Vectorcall(asked, args, static_cast<size_t>(count), names);
  Py_DECREF(asked);
  return made;
}

// A literal is the same object each time, mostly the one in `regions`: found without a look into the dict.
PyObject* mark(PyObject*, PyObject* name) {
  if (!tell(&Watcher::mark, name)) return nullptr;
  if (!forest.running()) Py_RETURN_NONE;
  Node* child = forest.tree()->stack.back().node->find(name);
  if (child == nullptr) {
    PyObject* region = span(nullptr, name);
    if (region == nullptr) return nullptr;
    child = forest.tree()->stack.back().node->child(reinterpret_cast<Region*>(region)->name);
    Py_DECREF(region);  // `regions` keeps it
  }
  forest.tree()->mark(child);
  Py_RETURN_NONE;
}

struct Marks {
  PyObject_HEAD PyObject* names;  // tuple of the str objects in `regions`
  Slots slots;
};

PyObject* marks_start(PyObject* self, PyObject*) {
  if (!tell(&Watcher::start, nullptr)) return nullptr;
  if (forest.running()) reinterpret_cast<Marks*>(self)->slots.start(forest);
  Py_RETURN_NONE;
}

PyObject* marks_mark(PyObject* self, PyObject* given) {
  Slots& slots = reinterpret_cast<Marks*>(self)->slots;
  const Py_ssize_t slot = PyLong_AsSsize_t(given);
  if (slot == -1 && PyErr_Occurred()) return nullptr;
  if (slot < 0 || slot >= static_cast<Py_ssize_t>(slots.count()))
    return PyErr_Format(PyExc_IndexError, "slot %zd of %zu marks", slot, slots.count());
  if (!tell(&Watcher::mark, PyTuple_GET_ITEM(reinterpret_cast<Marks*>(self)->names, slot))) return nullptr;
  if (forest.running()) slots.mark(forest, static_cast<size_t>(slot));
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
  static const char* keywords[] = {"", nullptr};  // positional only
  PyObject* given = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:Marks", const_cast<char**>(keywords), &given))
    return nullptr;
  PyObject* names = canonical_names(given);
  if (names == nullptr) return nullptr;
  Marks* marks = reinterpret_cast<Marks*>(type->tp_alloc(type, 0));
  if (marks == nullptr) {
    Py_DECREF(names);
    return nullptr;
  }
  PyObject** first = reinterpret_cast<PyTupleObject*>(names)->ob_item;
  marks->names = names;
  new (&marks->slots) Slots(std::vector<Name>(first, first + PyTuple_GET_SIZE(names)));
  return reinterpret_cast<PyObject*>(marks);
}

void marks_dealloc(PyObject* self) {
  Marks* marks = reinterpret_cast<Marks*>(self);
  PyTypeObject* type = Py_TYPE(self);
  marks->slots.~Slots();
  Py_DECREF(marks->names);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* enable(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"cpu", nullptr};
  int cpu = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$p:enable", const_cast<char**>(names), &cpu))
    return nullptr;
  forest.enable(cpu != 0);
  Py_RETURN_NONE;
}

PyObject* disable(PyObject*, PyObject*) {
  forest.disable();
  Py_RETURN_NONE;
}

PyObject* enabled(PyObject*, PyObject*) { return PyBool_FromLong(forest.running()); }

PyObject* clocked(PyObject*, PyObject*) { return PyBool_FromLong(forest.clocked()); }

PyObject* tuple_of(const std::vector<Row>& rows);

// (name, calls, total_ns, cpu_ns or None, rows below)
PyObject* tuple_of(const Row& row) {
  PyObject* below = tuple_of(row.children);
  if (below == nullptr) return nullptr;
  PyObject* cpu = row.cpu_ns == unknown ? Py_NewRef(Py_None) : PyLong_FromLongLong(row.cpu_ns);
  if (cpu == nullptr) {
    Py_DECREF(below);
    return nullptr;
  }
  return Py_BuildValue("(OLLNN)", const_cast<void*>(row.name), static_cast<long long>(row.calls),
                       static_cast<long long>(row.total_ns), cpu, below);
}

PyObject* tuple_of(const std::vector<Row>& rows) {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(rows.size()));
  for (size_t i = 0; tuple != nullptr && i < rows.size(); ++i) {
    PyObject* item = tuple_of(rows[i]);
    if (item == nullptr)
      Py_CLEAR(tuple);
    else
      PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), item);
  }
  return tuple;
}

PyObject* read(PyObject*, PyObject*) { return tuple_of(forest.rows()); }

PyObject* read_here(PyObject*, PyObject*) { return tuple_of(forest.rows_of(forest.tree())); }

// The names of the spans that this thread is in, from the outermost inwards.
PyObject* opened(PyObject*, PyObject*) {
  const std::vector<Frame>& stack = forest.tree()->stack;
  std::vector<Name> names;
  for (size_t depth = 1; depth < stack.size(); ++depth) names.push_back(stack[depth].node->name);
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(names.size()));
  for (size_t i = 0; tuple != nullptr && i < names.size(); ++i)
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i),
                     Py_NewRef(static_cast<PyObject*>(const_cast<void*>(names[i]))));
  return tuple;
}

PyObject* keep(PyObject*, PyObject* given) {
  const Py_ssize_t events = PyLong_AsSsize_t(given);
  if (events == -1 && PyErr_Occurred()) return nullptr;
  if (events < 0) return PyErr_Format(PyExc_ValueError, "a log of %zd events", events);
  forest.log().keep(static_cast<size_t>(events));
  Py_RETURN_NONE;
}

PyObject* lap(PyObject*, PyObject* given) {
  const int64_t now = read_clock();
  const long long number = PyLong_AsLongLong(given);
  if (number == -1 && PyErr_Occurred()) return nullptr;
  if (forest.running()) forest.log().lap(now, number);
  Py_RETURN_NONE;
}

PyObject* glance(PyObject*, PyObject*) {
  if (forest.running()) forest.log().glance(read_clock());
  Py_RETURN_NONE;
}

// Ticks and nanoseconds of one moment: two of them make a time line.
PyObject* moment(PyObject*, PyObject*) {
  const int64_t before = read_clock();
  const uint64_t ns = hl::Clock::steady_ns();
  const int64_t after = read_clock();
  return Py_BuildValue("(LK)", static_cast<long long>(before + (after - before) / 2),
                       static_cast<unsigned long long>(ns));
}

PyObject* places_of(const std::vector<Place>& places) {
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(places.size()));
  for (size_t i = 0; list != nullptr && i < places.size(); ++i) {
    PyObject* item =
        Py_BuildValue("(LLO)", static_cast<long long>(places[i].thread),
                      static_cast<long long>(places[i].parent), const_cast<void*>(places[i].node->name));
    if (item == nullptr)
      Py_CLEAR(list);
    else
      PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), item);
  }
  return list;
}

// ([(thread, parent, name)], int64 rows of (place, begin, end, own) as bytes, missed); copied before Python
// is called, which may collect garbage, which may be in a span.
PyObject* take(PyObject*, PyObject*) {
  const std::vector<Place> places = list_places(forest);
  std::unordered_map<const Node*, int64_t> number;
  for (size_t i = 0; i < places.size(); ++i) number[places[i].node] = static_cast<int64_t>(i);
  std::vector<int64_t> rows;
  for (const Event& event : forest.log().events()) {
    const int64_t place = event.node == nullptr ? event.place : number[event.node];
    rows.insert(rows.end(), {place, event.begin, event.end, event.own});
  }
  const auto missed = static_cast<long long>(forest.log().missed());
  forest.log().clear();
  const auto bytes = static_cast<Py_ssize_t>(rows.size() * sizeof(int64_t));
  return Py_BuildValue("(NNL)", places_of(places),
                       PyBytes_FromStringAndSize(reinterpret_cast<const char*>(rows.data()), bytes), missed);
}

PyCFunction as_function(PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef region_methods[] = {
    {"__enter__", region_enter, METH_NOARGS, "Open a span of this name, where spans are enabled."},
    {"__exit__", as_function(region_exit), METH_FASTCALL, "Close the innermost open span of this name."},
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
    {"span", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(span_asked)),
     METH_FASTCALL | METH_KEYWORDS, "The region of a name; the same object each time."},
    {"mark", mark, METH_O, "Charge the time since the last mark in the innermost open span to a name."},
    {"enable", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(enable)), METH_VARARGS | METH_KEYWORDS,
     "Begin with an empty tree; spans that are open now are left out."},
    {"disable", disable, METH_NOARGS, "Stop the clock; the tree stays to be read."},
    {"enabled", enabled, METH_NOARGS, "Whether spans are being timed."},
    {"clocked", clocked, METH_NOARGS, "Whether spans read the CPU clock of their thread."},
    {"keep", keep, METH_O, "Make a log with room for so many spans and marks; 0 is none."},
    {"lap", lap, METH_O, "Log the time since the last lap, with a number."},
    {"glance", glance, METH_NOARGS, "Log how often the thread was put off its core since the last glance."},
    {"take", take, METH_NOARGS, "What was logged: places, rows, how many there was no room for."},
    {"moment", moment, METH_NOARGS, "Ticks and nanoseconds of now."},
    {"read", read, METH_NOARGS, "The outermost rows of every thread, those still open up to now."},
    {"read_here", read_here, METH_NOARGS, "The outermost rows of this thread, those still open up to now."},
    {"opened", opened, METH_NOARGS, "The names of the spans this thread is in, from the outermost inwards."},
    {"watch", watch, METH_O, "Tell somebody of every boundary before the clock is read; None tells nobody."},
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
