#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/checkpoint/checkpoint_store.h"
#include "common/model/variable.h"

namespace shoal {

void WriteAll(const std::string& path, const std::string& content);
// Returns the names of the entries of a directory, sorted.
std::vector<std::string> NamesIn(const std::string& directory);

// Returns four variables, one of them a moving average. They fill several files of both kinds.
std::vector<Variable> SmallVariables();
std::vector<std::string> SmallSlots();
CheckpointLayout SmallLayout();
std::map<std::string, std::string> SmallTexts();
Manifest SmallManifest(uint64_t timeline, uint64_t cut_step);

// Returns the test's value at element `index` of a tensor.
float SmallValue(const std::string& tensor, uint64_t index, uint64_t cut_step);

// Writes the elements [begin, end) of every tensor, cut to the tensor's size, like a ps that holds
// them.
std::vector<WrittenPart> WriteElements(const CheckpointLayout& layout, const std::string& directory,
                                       uint64_t begin, uint64_t end, uint64_t cut_step,
                                       FileSystem* files = RealFileSystem());

// Writes and commits a checkpoint of three ps.
StoredCheckpoint WriteSmallCheckpoint(CheckpointStore* store, uint64_t timeline, uint64_t cut_step);

}  // namespace shoal
