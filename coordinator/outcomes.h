#pragma once

#include "coordinator/run_parts.h"

namespace shoal {

// Takes the outcomes that the parts have kept since the last call, in their order, and records them
// in the other parts: a superseded cut renews the term, a ready one begins its evaluation.
// Reconciler decides afterwards. Loop thread only.
//
// Call it at the start of each turn, and when a timeline is over. Otherwise an outcome of that
// timeline would count for the next one.
void RecordOutcomes(RunParts* parts);

}  // namespace shoal
