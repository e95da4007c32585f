// openmp.cpp - looks among the libraries of this process; nothing is loaded.
#include "engine/openmp.h"

#include <string>

#if defined(__linux__)
#include <dlfcn.h>
#include <link.h>
#endif

namespace hl {

#if defined(__linux__)

namespace {

struct Search {
  std::string_view path_begins;
  std::string found;
};

int look_at(dl_phdr_info* library, size_t, void* given) {
  auto* search = static_cast<Search*>(given);
  const std::string_view path = library->dlpi_name;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const bool openmp =
      name.starts_with("libgomp") || name.starts_with("libiomp5") || name.starts_with("libomp");
  if (!openmp || !path.starts_with(search->path_begins)) return 0;
  search->found = path;
  return 1;
}

}  // namespace

Fork find_openmp(std::string_view path_begins) {
  Search search{path_begins, {}};
  if (dl_iterate_phdr(look_at, &search) == 0) return nullptr;
  void* library = dlopen(search.found.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  auto fork = reinterpret_cast<Fork>(dlsym(library, "GOMP_parallel"));
  dlclose(library);  // whoever loaded it keeps it
  return fork;
}

#else

Fork find_openmp(std::string_view) { return nullptr; }

#endif

}  // namespace hl
