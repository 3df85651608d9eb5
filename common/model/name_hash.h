#pragma once

#include <cstdint>
#include <string>

namespace shoal {

// 64-bit FNV-1a. It gives each variable and layer its own random numbers, the same on every
// machine.
inline uint64_t HashName(const std::string& name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace shoal
