#include "common/optimizer/schedules/schedule_table.h"

// Every schedule in one line: Keras's class. The file of its name defines MakeCLASS.
#define SHOAL_SCHEDULES(SCHEDULE)  \
  SCHEDULE(ExponentialDecay)       \
  SCHEDULE(PiecewiseConstantDecay) \
  SCHEDULE(PolynomialDecay)        \
  SCHEDULE(InverseTimeDecay)       \
  SCHEDULE(CosineDecay)            \
  SCHEDULE(CosineDecayRestarts)

namespace shoal {

#define SHOAL_DECLARE_SCHEDULE(CLASS) Schedule Make##CLASS(KerasOptions&);
SHOAL_SCHEDULES(SHOAL_DECLARE_SCHEDULE)
#undef SHOAL_DECLARE_SCHEDULE

namespace {

#define SHOAL_SCHEDULE_LINE(CLASS) {#CLASS, Make##CLASS},
constexpr KerasType<Schedule> kSchedules[] = {SHOAL_SCHEDULES(SHOAL_SCHEDULE_LINE)};
#undef SHOAL_SCHEDULE_LINE

}  // namespace

KerasTable<Schedule> ScheduleTable() { return {"a learning rate schedule", kSchedules}; }

}  // namespace shoal
