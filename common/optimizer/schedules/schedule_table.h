#pragma once

#include "common/json/keras_table.h"
#include "common/optimizer/schedules/schedule.h"

namespace shoal {

// All learning rate schedules.
KerasTable<Schedule> ScheduleTable();

}  // namespace shoal
