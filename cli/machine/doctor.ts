/**
 * `rdma-rpc doctor`: finds problems of this machine's configuration and prints each with its remedy. The exit
 * code is 1 when something does not work. With `--report` the command writes a report about the machine
 * (report/report.ts).
 */
import { type Command, Option } from '#commander';
import pc from '#picocolors';
import { fabricNames } from '../../runtime/fabrics.ts';
import { writeOutput } from '../output.ts';
import { examine } from './checks.ts';
import { type Facts, factsHere } from './facts.ts';
import { type Finding, findingsText, problem } from './findings.ts';
import { machineAt } from './machine.ts';

interface DoctorFlags {
  readonly fabric?: string;
  readonly json?: true;
  /** A path, `-` for standard output, or true for the default name. */
  readonly report?: string | true;
}

const reportDefault = 'rdma-rpc-report.md';

/** Runs the self-test and writes the report. */
async function writeReport(flag: string | true, findings: readonly Finding[], facts: Facts): Promise<void> {
  const [{ reportText, subjectsOf }, { selfTest }, { Masking, privateHere }, { loadNative }] =
    await Promise.all([
      import('./report/report.ts'),
      import('./report/self-test.ts'),
      import('./report/masking.ts'),
      import('../../runtime/native/native.ts'),
    ]);
  const tested = [];
  for (const subject of subjectsOf(facts)) {
    console.error(`testing ${subject.device ?? subject.fabric}`);
    tested.push(await selfTest(subject));
  }
  const details = facts.whyNoAddon === '' ? loadNative().verbsDetails() : [];
  const text = reportText(
    { machine: machineAt(), facts, findings, details, tested },
    new Masking(privateHere()),
  );
  if (flag === '-') {
    process.stdout.write(text);
    return;
  }
  const path = flag === true ? reportDefault : flag;
  writeOutput(path, text);
  console.error(`wrote ${path}: read it before you send it`);
}

const painted = (text: string): string =>
  text.replace(/^(?:ok|advice|problem)\b/gm, (level) =>
    level === 'ok' ? pc.green(level) : level === 'advice' ? pc.yellow(level) : pc.red(level),
  );

export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .description(
      'find configuration problems of this machine, and say what to do; exit code 1 when something does not work',
    )
    .addOption(
      new Option('--fabric <name>', 'report a problem unless this fabric works here').choices([
        ...fabricNames,
      ]),
    )
    .option('--json', 'print JSON for programs; docs/schemas describes it')
    .option(
      '--report [file]',
      `test each device and fabric, and write a report without private data, to attach to an issue (default: ${reportDefault}; - prints it)`,
    )
    .action(async ({ fabric, json, report }: DoctorFlags) => {
      const facts = factsHere();
      const findings: Finding[] = examine(machineAt(), facts);
      const wanted = facts.fabrics.find(({ name }) => name === fabric);
      if (wanted !== undefined && wanted.whyNot !== '')
        findings.push(problem('fabric', `${wanted.name} cannot be used: ${wanted.whyNot}`, 'see above'));
      if (report !== undefined) await writeReport(report, findings, facts);
      else if (json === true) console.log(JSON.stringify({ findings }, null, 2));
      else console.log(painted(findingsText(findings)));
      process.exitCode = findings.some(({ level }) => level === 'problem') ? 1 : 0;
    });
}
