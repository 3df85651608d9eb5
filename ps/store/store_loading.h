#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/files/file_system.h"
#include "ps/store/variable_store.h"

namespace shoal {

// Rule 3 of the protocol: the two ways to fill a new store. Both set all values and slots.

// Fills it by the initializers and the seed of its options; nothing is applied.
void FillFromSeed(VariableStore* store);

// Fills it from the checkpoint in `directory`, which is verified completely. All steps below its
// cut count as applied. After an error the store must not be used. kFailedPrecondition: the
// checkpoint lacks slots of this optimizer. Other errors come from CheckpointReader.
absl::Status FillFromCheckpoint(const std::string& directory, FileSystem* files,
                                VariableStore* store);

}  // namespace shoal
