// Computes activations of schedules with the library that Kubernetes uses, for comparison with cronwheel.
//
// Standard input has one query per line: schedule, zone, instant in RFC 3339 and count, separated by tabs. As with
// `cronwheel next --stdin`, each query is printed with a tab and its result. The result is a list of activations, each
// computed from the previous one, with `-` if the library finds none. If the library returns an error, the result is
// `ERR`, a tab and the message. `LOOP` in place of `-` stands for a search that does not end.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	_ "time/tzdata"

	"github.com/robfig/cron/v3"
)

const (
	lineBytesMax = 1 << 20
	// The input that is read ahead must fit into a pipe, see resume.
	bufferBytes = 32 << 10
	// Searches that end take at most a quarter of a second, for minutes without a value in a zone.
	searchCPUMax = 1500 * time.Millisecond
	// The descriptor with the input that this program had read, but not processed, before it restarted itself.
	resumeVariable = "CRONWHEEL_ORACLE_RESUME"
)

var escaper = strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`)
var unescaper = strings.NewReplacer(`\\`, `\`, `\t`, "\t", `\n`, "\n", `\r`, "\r")

// oracle keeps the last schedule, since parsing one with a zone reads a file.
type oracle struct {
	input  *bufio.Reader
	output *bufio.Writer
	// Incremented at the start and at the end of each query, so it is odd during a query.
	turn atomic.Uint64
	// The current query and its result so far. The watchdog prints them if the search does not end.
	query, result []byte

	text     string
	schedule cron.Schedule
	err      error
	zones    map[string]bool
}

func main() {
	debug.SetGCPercent(400)
	oracle := &oracle{
		input:  bufio.NewReaderSize(openInput(), bufferBytes),
		output: bufio.NewWriterSize(os.Stdout, bufferBytes),
		zones:  map[string]bool{},
	}
	go oracle.watch()
	if err := oracle.run(); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func (o *oracle) run() error {
	for {
		line, err := o.readLine()
		if err == io.EOF && len(line) == 0 {
			return o.output.Flush()
		}
		if err != nil && err != io.EOF {
			return err
		}
		o.query, o.result = line, o.result[:0]
		turn := o.turn.Add(1)
		err = o.process(string(line))
		if !o.turn.CompareAndSwap(turn, turn+1) {
			// The watchdog has given up the search and prints the result.
			select {}
		}
		if err != nil {
			return fmt.Errorf("%q: %w", line, err)
		}
		o.print("\n")
		// A client that sends one query at a time waits for its result.
		if o.input.Buffered() == 0 {
			if err := o.output.Flush(); err != nil {
				return err
			}
		}
	}
}

func (o *oracle) readLine() ([]byte, error) {
	var line []byte
	for {
		part, err := o.input.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > lineBytesMax {
			return nil, fmt.Errorf("a line longer than %d bytes", lineBytesMax)
		}
		if err != bufio.ErrBufferFull {
			return bytes.TrimSuffix(line, []byte("\n")), err
		}
	}
}

func (o *oracle) print(end string) {
	o.output.Write(o.query)
	o.output.WriteByte('\t')
	o.output.Write(o.result)
	o.output.WriteString(end)
}

func (o *oracle) process(query string) error {
	columns := strings.Split(query, "\t")
	if len(columns) != 4 {
		return fmt.Errorf("%d columns instead of 4", len(columns))
	}
	from, err := time.Parse(time.RFC3339Nano, columns[2])
	if err != nil {
		return err
	}
	count, err := strconv.Atoi(columns[3])
	if err != nil {
		return err
	}
	text := o.effective(unescaper.Replace(columns[0]), columns[1])
	if text != o.text || o.schedule == nil && o.err == nil {
		o.text = text
		o.schedule, o.err = parse(text)
	}
	if o.err != nil {
		o.result = append(o.result, "ERR\t"+escaper.Replace(o.err.Error())...)
	} else {
		o.step(from.UTC(), count)
	}
	return nil
}

func (o *oracle) step(reference time.Time, count int) {
	for index := range count {
		if index > 0 {
			o.result = append(o.result, ' ')
		}
		reference = o.schedule.Next(reference)
		if reference.IsZero() {
			o.result = append(o.result, '-')
			return
		}
		o.result = reference.UTC().AppendFormat(o.result, time.RFC3339Nano)
	}
}

// effective combines schedule and zone as the CronJob controller does.
func (o *oracle) effective(text, zone string) string {
	if zone == "" || strings.Contains(text, "TZ") {
		return text
	}
	loads, isKnown := o.zones[zone]
	if !isKnown {
		_, err := time.LoadLocation(zone)
		loads = err == nil
		if len(o.zones) < 10_000 {
			o.zones[zone] = loads
		}
	}
	if !loads {
		return text
	}
	return "TZ=" + zone + " " + text
}

// parse reports a panic of the library as an error, as Kubernetes does.
func parse(text string) (schedule cron.Schedule, err error) {
	defer func() {
		if panic := recover(); panic != nil {
			schedule, err = nil, fmt.Errorf("invalid schedule format: %v", panic)
		}
	}()
	return cron.ParseStandard(text)
}

// watch gives up a search that takes too much processor time. Wall time would also count pauses of the machine.
func (o *oracle) watch() {
	var turn uint64
	var begin time.Duration
	for range time.Tick(50 * time.Millisecond) {
		now := cpuTime()
		if current := o.turn.Load(); current != turn || current%2 == 0 {
			turn, begin = current, now
		} else if now-begin > searchCPUMax {
			if o.turn.CompareAndSwap(turn, turn+1) {
				o.giveUp()
			}
		}
	}
}

// giveUp prints the result of a search that does not end, and restarts the program, because a goroutine cannot be
// killed.
func (o *oracle) giveUp() {
	o.print("LOOP\n")
	err := o.output.Flush()
	if err == nil {
		err = o.resume()
	}
	fmt.Fprintln(os.Stderr, "oracle: cannot go on after a search that does not end:", err)
	os.Exit(1)
}

func (o *oracle) resume() error {
	ahead, err := o.input.Peek(o.input.Buffered())
	if err != nil {
		return err
	}
	// Descriptors of syscall.Pipe stay open across exec, unlike those of os.Pipe.
	var pipe [2]int
	if err := syscall.Pipe(pipe[:]); err != nil {
		return err
	}
	if _, err := syscall.Write(pipe[1], ahead); err != nil {
		return err
	}
	if err := syscall.Close(pipe[1]); err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.Setenv(resumeVariable, strconv.Itoa(pipe[0])); err != nil {
		return err
	}
	return syscall.Exec(program, os.Args, os.Environ())
}

func openInput() io.Reader {
	descriptor, err := strconv.ParseUint(os.Getenv(resumeVariable), 10, 31)
	if err != nil {
		return os.Stdin
	}
	syscall.CloseOnExec(int(descriptor))
	return io.MultiReader(os.NewFile(uintptr(descriptor), "resumed"), os.Stdin)
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
