#pragma once
// The subcommands of `orrery`. Each adds its flags to the application and, if it is the subcommand
// given, runs in its callback: results on stdout, exit code in its argument. Callbacks do not catch
// errors: main maps InputError to exit code 2, OutputError (stdout's too) to 74 and everything else
// to 3.

#include <CLI/CLI.hpp>

namespace orrery::scenarios {

/// Exit codes that scripts may rely on (design, "Command line").
inline constexpr int exit_done = 0;
inline constexpr int exit_answer_is_no = 1;
inline constexpr int exit_wrong_input = 2;
inline constexpr int exit_internal_error = 3;
inline constexpr int exit_output_failed = 74;

/// The most worker threads that a search takes.
inline constexpr unsigned most_threads = 1024;

/// `exit_code` is exit_done when a callback begins and outlives the application.
void add_simulate(CLI::App& application, int& exit_code);
void add_show(CLI::App& application, int& exit_code);
void add_validate(CLI::App& application, int& exit_code);
void add_plan(CLI::App& application, int& exit_code);
void add_buy(CLI::App& application, int& exit_code);
void add_check(CLI::App& application, int& exit_code);
void add_train(CLI::App& application, int& exit_code);
void add_fit(CLI::App& application, int& exit_code);
void add_calibrate(CLI::App& application, int& exit_code);
void add_execute(CLI::App& application, int& exit_code);
void add_scale(CLI::App& application, int& exit_code);
void add_sweep(CLI::App& application, int& exit_code);
void add_merge(CLI::App& application, int& exit_code);
void add_contention(CLI::App& application, int& exit_code);
void add_collective(CLI::App& application, int& exit_code);
void add_compare(CLI::App& application, int& exit_code);
void add_diagnose(CLI::App& application, int& exit_code);
void add_import(CLI::App& application, int& exit_code);
void add_export(CLI::App& application, int& exit_code);
void add_checkpoint(CLI::App& application, int& exit_code);
void add_completion(CLI::App& application, int& exit_code);
void add_schema(CLI::App& application, int& exit_code);
void add_report(CLI::App& application, int& exit_code);
void add_man(CLI::App& application, int& exit_code);
/// Every command with its flags, in the order of --help.
void add_every_command(CLI::App& application, int& exit_code);
void add_fit_software(CLI::App& fit, int& exit_code);  // below `fit`

}  // namespace orrery::scenarios
