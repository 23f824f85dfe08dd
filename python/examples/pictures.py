"""Two pictures of one step, as pages that any browser opens."""

import orrery as orr

run = orr.load("llama3-70b-64-h100").simulate()
run.plot_waterfall().write_html("waterfall.html")
run.plot_timeline(stages=[0, 3, 7]).write_html("timeline.html")
print(run)
