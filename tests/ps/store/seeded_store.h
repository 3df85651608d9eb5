#pragma once

#include <memory>

#include "ps/store/store_loading.h"
#include "tests/ps/store/test_store.h"

namespace shoal {

// Makes a store that has drawn its first values from its seed.
inline std::unique_ptr<VariableStore> SeededStore(const TestStoreOptions& options = {}) {
  auto store = MakeTestStore(options);
  FillFromSeed(store.get());
  return store;
}

}  // namespace shoal
