/** Reads the JUnit file that ctest writes. A test that skipped itself is "not run", with the reason that it printed. */

const CASE = /<testcase name="([^"]*)"[^>]*? time="([\d.]+)" status="(\w+)"[^>]*>([\s\S]*?)<\/testcase>/g;
const ENTITIES = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&apos;': "'", '&amp;': '&' };

const plain = (text) => text.replaceAll(/&(lt|gt|quot|apos|amp);/g, (entity) => ENTITIES[entity]);

/** `failures`: the names of the tests that failed; `notRun`: reason → how many tests gave it; `timed`: how long each test took. */
export function readReport(xml) {
  const report = { passed: 0, failed: 0, failures: [], notRun: new Map(), timed: [] };
  for (const [, name, seconds, status, body] of xml.matchAll(CASE)) {
    report.timed.push({ name: plain(name), ms: Math.round(Number(seconds) * 1000) });
    if (status === 'run') report.passed += 1;
    else if (status === 'fail') {
      report.failed += 1;
      report.failures.push(plain(name));
    } else {
      const reason = plain(/: Skipped\n(.*)/.exec(body)?.[1] ?? 'no reason given').replace(/^not run: /, '');
      report.notRun.set(reason, (report.notRun.get(reason) ?? 0) + 1);
    }
  }
  return report;
}
