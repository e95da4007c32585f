#include "engine/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace hl {
namespace {

[[noreturn]] void refuse(const std::string& folder, size_t bytes, int error) {
  throw MappingError("no file of " + std::to_string(bytes) + " bytes can be mapped in " + folder + ": " +
                     std::strerror(error));
}

// Pages are reserved before they are used: a disk that fills up later would end the process.
int reserve(int file, size_t bytes) {
#ifdef __linux__
  return posix_fallocate(file, 0, static_cast<off_t>(bytes));
#else
  return ftruncate(file, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
#endif
}

}  // namespace

Mapping::Mapping(const std::string& folder, size_t bytes) : bytes_(bytes), data_(nullptr) {
  std::string name = folder + "/hotloop-XXXXXX";
  int file = mkstemp(name.data());
  if (file < 0) refuse(folder, bytes, errno);
  unlink(name.c_str());
  int error = reserve(file, bytes);
  void* mapped = error != 0 ? MAP_FAILED : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (error == 0 && mapped == MAP_FAILED) error = errno;
  close(file);
  if (error != 0) refuse(folder, bytes, error);
  data_ = static_cast<std::byte*>(mapped);
}

Mapping::~Mapping() { munmap(data_, bytes_); }

}  // namespace hl
