#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/job/data_source.h"
#include "common/job/job_reader.h"
#include "common/json/json_errors.h"

namespace shoal {

// What a data source's `format` may be: the names in data_format_list.inc.
std::vector<std::string> DataFormatNames();

// Reads an entry of a job's data section, which stands at `path`; what is wrong is added to
// `errors`, and then the source returned is not whole.
DataSource ReadDataSource(const nlohmann::json& value, const std::string& path,
                          const JobReadOptions& options, JsonErrors* errors);

// What ReadDataSource reads back as the same. What is at its default is left out, so that a run
// which an older program began has the same job still.
nlohmann::json DataSourceToJson(const DataSource& source);

}  // namespace shoal
