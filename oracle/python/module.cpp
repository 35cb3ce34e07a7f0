// The extension module ringproof._core. What people call is in ringproof/*.py; here are only the
// doors, each with as little of Python in it as can be.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "oracle/case/error.hpp"
#include "oracle/generate/write_suite.hpp"
#include "oracle/python/case_files.hpp"
#include "oracle/python/functions.hpp"
#include "oracle/python/judgement.hpp"
#include "oracle/python/subject.hpp"

namespace {

using namespace ringproof;
using namespace ringproof::python;

nb::list presets() {
  nb::list names;
  for (const std::string& preset : oracle::preset_names()) names.append(preset.c_str());
  return names;
}

void write_arrays(const std::string& path, const nb::dict& tensors, const std::string& spec) {
  const Subject subject(tensors, spec, path);
  write_tensors(path, subject.arrays->source(), oracle::to_json(subject.input.problem.spec));
}

std::int64_t write_suite(const std::string& suite, const std::string& folder, std::uint64_t seed,
                         const nb::object& threads) {
  oracle::SuiteOptions options;
  options.seed = seed;
  options.walk.threads = thread_count(threads);
  const nb::gil_scoped_release without_lock;
  return oracle::write_suite(suite, folder, options).written;
}

}  // namespace

NB_MODULE(_core, module) {
  nb::set_leak_warnings(false);  // a report that outlives the interpreter is no mistake
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const oracle::BadInput& error) {
      PyErr_SetString(PyExc_ValueError, error.what());
    }
  });

  nb::class_<Judgement>(module, "Judgement")
      .def(nb::init<const nb::object&, const std::string&, const std::string&, const nb::dict&,
                    const std::string&>(),
           nb::arg("tensors"), nb::arg("spec"), nb::arg("contract"), nb::arg("options"),
           nb::arg("name"))
      .def("text", &Judgement::text, nb::arg("repeat"))
      .def("json", &Judgement::json, nb::arg("repeat"))
      .def("html", &Judgement::html, nb::arg("repeat"))
      .def("explanation_text", &Judgement::explanation_text)
      .def("explanations_json", &Judgement::explanations_json)
      .def("heat_map", &Judgement::heat_map)
      .def("save", &Judgement::save, nb::arg("path"));

  module.attr("version") = RINGPROOF_VERSION;
  module.def("truth", &truth, nb::arg("tensors"), nb::arg("spec"), nb::arg("type"),
             nb::arg("options"), nb::arg("name"));
  module.def("fit", &fit, nb::arg("tensors"), nb::arg("spec"), nb::arg("contract"),
             nb::arg("options"), nb::arg("name"));
  module.def("audit", &audit, nb::arg("rule"), nb::arg("tensors").none(), nb::arg("spec"),
             nb::arg("contract"), nb::arg("rows"), nb::arg("forms"), nb::arg("threads").none(),
             nb::arg("seed"), nb::arg("name"));
  module.def("public_rule_names", &public_rule_names);
  module.def("presets", &presets);
  module.def("contract_hash", &oracle::contract_hash, nb::arg("contract"));
  module.def("expanded_contract", &oracle::expanded_json, nb::arg("contract"));
  module.def("read_tensors", &read_tensors, nb::arg("path"));
  module.def("write_tensors", &write_arrays, nb::arg("path"), nb::arg("tensors"), nb::arg("spec"));
  module.def("suite_size", &suite_size, nb::arg("suite"));
  module.def("suite_problem", &suite_problem, nb::arg("suite"), nb::arg("number"), nb::arg("seed"));
  module.def("write_suite", &write_suite, nb::arg("suite"), nb::arg("folder"), nb::arg("seed"),
             nb::arg("threads").none());
}
