#pragma once

#include <string>

#include "absl/status/status.h"

namespace shoal {

// Errors about a job's data quote its files: a value, the names of columns and folders. They tell
// the worker's own operator what to repair. A coordinator that has not shown who it is gets where
// the error is, and nothing that the file says: it could name any file as data. All functions are
// thread-safe.

// Marks an error as one about the job's data. OK stays OK.
absl::Status DataError(absl::Status status);

// The same for an error of a ModelRunner, if it is about the values of its batch: kInvalidArgument
// or kOutOfRange (CheckLabels).
absl::Status BatchError(absl::Status status);

// Returns the text of an error for the coordinator: the message, or, if it is a DataError and
// `may_quote` is false, for each line of the message only the file, the numbers that say where in
// it ("line 3") and the code.
std::string TextForCoordinator(const absl::Status& status, bool may_quote);

}  // namespace shoal
