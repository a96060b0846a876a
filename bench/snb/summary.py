"""Lines and conclusions of run.py from the results of its queries."""

import statistics

COMPLEX = [f"IC{n}" for n in range(1, 13)]
BANYAN = [f"CQ{n}" for n in range(1, 7)]


def heading(engines):
    first, *peers = engines
    return f"{'':5} {first:>10} {'slowest':>10} {'rows':>6}" + "".join(f" {peer:>20}" for peer in peers)


def line(query, results):
    """One row of the table: FicusDB's median and slowest set and its rows, then each peer's median with its ratio, and what was wrong."""
    def time(result):
        if result["median_ms"] is None:
            return "failed" if result["problem"] else "-"
        return f"{result['median_ms']:.2f}{'+' * (result['timeouts'] > 0)}"

    (_, ficus), *peers = results.items()
    text = f"{query:5} {time(ficus):>10} {max(ficus['ms'], default=0):>10.2f} {statistics.mean(ficus['rows'] or [0]):>6.1f}"
    for _, peer in peers:
        ratio = f"[{peer['median_ms'] / ficus['median_ms']:.2f}]" if ficus["median_ms"] and peer["median_ms"] else ""
        text += f" {time(peer):>10} {ratio:>9}"
    problems = [f"{name} WRONG: {result['problem']}" for name, result in results.items() if result["problem"]]
    return text + "  " + ("; ".join(problems) or "equal")


def conclusions(results):
    """What the run says: geometric means over IC1 to IC12, where FicusDB is not the fastest, ratios of CQ1 to CQ6 to the faster peer."""
    queries = {query: {name: result["median_ms"] for name, result in engines.items() if result["median_ms"]}
               for query, engines in results.items()}
    lines = []
    complex_reads = [times for query, times in queries.items() if query in COMPLEX]
    for name in complex_reads[0] if complex_reads else []:
        both = [times for times in complex_reads if name in times and "FicusDB" in times]
        own, mean = (statistics.geometric_mean(times[one] for times in both) for one in ("FicusDB", name))
        lines.append(f"geometric mean over {len(both)} of IC1 to IC12: {name} {mean:.2f} ms"
                     + (f", {mean / own:.2f} times FicusDB's {own:.2f}" if name != "FicusDB" else ""))
    ratios = {query: min(time for name, time in times.items() if name != "FicusDB") / times["FicusDB"]
              for query, times in queries.items() if len(times) > 1 and "FicusDB" in times}
    if ratios:
        slower = [f"{query} {ratio:.2f}" for query, ratio in ratios.items() if ratio < 1]
        lines.append(f"slower than the fastest peer: {', '.join(slower) or 'none'}")
        lines.append("the faster peer's time by FicusDB's: " + ", ".join(f"{query} {ratios[query]:.2f}" for query in BANYAN if query in ratios))
    return lines
