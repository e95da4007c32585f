// fields.h - a world's plan as it comes from Python: names to numbers, texts and lists of numbers.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "engine/portable.h"

namespace hl {

class Fields {
 public:
  using Value = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>>;

  void set(const std::string& name, Value value) { values_[name] = std::move(value); }

  int64_t integer(const std::string& name) const { return get<int64_t>(name); }
  uint32_t count(const std::string& name) const { return static_cast<uint32_t>(integer(name)); }
  double real(const std::string& name) const { return get<double>(name); }
  // Whether there is such a text, and what it says.
  bool says(const std::string& name, const std::string& text) const {
    auto found = values_.find(name);
    const auto* value = found == values_.end() ? nullptr : std::get_if<std::string>(&found->second);
    return value != nullptr && *value == text;
  }
  const std::string& text(const std::string& name) const { return get<std::string>(name); }
  const std::vector<int64_t>& list(const std::string& name) const { return get<std::vector<int64_t>>(name); }

  // An empty list has no type of its own.
  std::vector<double> reals(const std::string& name) const {
    const auto* whole = std::get_if<std::vector<int64_t>>(&find(name));
    return whole != nullptr && whole->empty() ? std::vector<double>() : get<std::vector<double>>(name);
  }

 private:
  const Value& find(const std::string& name) const {
    auto found = values_.find(name);
    if (found == values_.end()) throw std::invalid_argument("the plan has no field '" + name + "'");
    return found->second;
  }

  template <class T>
  const T& get(const std::string& name) const {
    const T* value = std::get_if<T>(&find(name));
    if (value == nullptr) throw std::invalid_argument("the plan's field '" + name + "' has another type");
    return *value;
  }

  std::map<std::string, Value> values_;
};

}  // namespace hl
