/**
 * `rdma-rpc doctor`: finds problems of this machine's configuration, each with its remedy. Exit code 1 when
 * something does not work.
 */
import { type Command, Option } from '#commander';
import pc from '#picocolors';
import { fabricNames } from '../../runtime/fabrics.ts';
import { examine } from './checks.ts';
import { factsHere } from './facts.ts';
import { type Finding, findingsText, problem } from './findings.ts';
import { machineAt } from './machine.ts';

interface DoctorFlags {
  readonly fabric?: string;
  readonly json?: true;
}

const painted = (text: string): string =>
  text.replace(/^(?:ok|advice|problem)\b/gm, (level) =>
    level === 'ok' ? pc.green(level) : level === 'advice' ? pc.yellow(level) : pc.red(level),
  );

export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .description(
      'find configuration problems of this machine, and say what to do; exit code 1: something does not work',
    )
    .addOption(
      new Option('--fabric <name>', 'report a problem unless this fabric works here').choices([
        ...fabricNames,
      ]),
    )
    .option('--json', 'JSON for programs, of docs/schemas')
    .action(({ fabric, json }: DoctorFlags) => {
      const facts = factsHere();
      const findings: Finding[] = examine(machineAt(), facts);
      const wanted = facts.fabrics.find(({ name }) => name === fabric);
      if (wanted !== undefined && wanted.whyNot !== '')
        findings.push(problem('fabric', `${wanted.name} cannot be used: ${wanted.whyNot}`, 'see above'));
      if (json === true) console.log(JSON.stringify({ findings }, null, 2));
      else console.log(painted(findingsText(findings)));
      process.exitCode = findings.some(({ level }) => level === 'problem') ? 1 : 0;
    });
}
