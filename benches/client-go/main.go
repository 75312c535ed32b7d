// Command client-go fills client-go's shared informer of pods and obeys, as the other contestants of the cache bench do.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"runtime"
	"runtime/debug"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// reads is how many objects a reconcile of the read-heavy mode reads.
const reads = 20

type answer struct {
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu"`
	Objects int     `json:"objects"`
	Calls   uint64  `json:"calls"`
	Found   int     `json:"found"`
}

type contestant struct {
	indexer cache.Indexer
	calls   atomic.Uint64
	keys    []string
	cursor  uint64
}

func main() {
	c := &contestant{}
	seconds := c.fill(os.Args[1], len(os.Args) > 2 && os.Args[2] == "lean")
	c.answer(seconds, 0)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		begun := time.Now()
		found := c.obey(strings.Split(lines.Text(), " "), &begun)
		c.answer(time.Since(begun).Seconds(), found)
	}
}

// fill returns the seconds until the cache was synced; lean leaves managedFields out of it.
func (c *contestant) fill(address string, lean bool) float64 {
	begun := time.Now()
	clients, err := kubernetes.NewForConfig(&rest.Config{Host: address})
	if err != nil {
		log.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(clients, 0)
	informer := factory.Core().V1().Pods().Informer()
	if lean {
		if err := informer.SetTransform(stripManagedFields); err != nil {
			log.Fatal(err)
		}
	}
	c.indexer = informer.GetIndexer()
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { c.calls.Add(1) },
		UpdateFunc: func(any, any) { c.calls.Add(1) },
		DeleteFunc: func(any) { c.calls.Add(1) },
	})
	if err != nil {
		log.Fatal(err)
	}
	stop := make(chan struct{})
	factory.Start(stop)
	// WaitForCacheSync looks every 100 ms only
	poll(informer.HasSynced)
	return time.Since(begun).Seconds()
}

func (c *contestant) obey(words []string, begun *time.Time) int {
	count := 0
	if len(words) == 2 {
		count, _ = strconv.Atoi(words[1])
	}
	if len(c.keys) == 0 && words[0] != "await" {
		c.keys = c.indexer.ListKeys()
		sort.Strings(c.keys)
		*begun = time.Now()
	}
	found := 0
	switch words[0] {
	case "await":
		key, version := words[1]+"/"+words[2], words[3]
		poll(func() bool {
			pod, ok := c.get(key)
			return ok && pod.ResourceVersion == version
		})
		found = 1
	case "hot":
		key := c.next()
		for range count {
			found += c.read(key)
		}
	case "cold":
		for range count {
			found += c.read(c.next())
		}
	case "reconcile":
		for range count * reads {
			found += c.read(c.next())
		}
	case "gc":
		runtime.GC()
		debug.FreeOSMemory()
	}
	return found
}

// next is a key that was not read before, until all were.
func (c *contestant) next() string {
	c.cursor++
	return c.keys[scattered(c.cursor, uint64(len(c.keys)))]
}

func (c *contestant) get(key string) (*corev1.Pod, bool) {
	object, ok, err := c.indexer.GetByKey(key)
	if err != nil || !ok {
		return nil, false
	}
	pod, ok := object.(*corev1.Pod)
	return pod, ok
}

func (c *contestant) read(key string) int {
	pod, ok := c.get(key)
	if ok && pod.Spec.NodeName != "" && pod.Status.Phase != "" {
		return 1
	}
	return 0
}

func (c *contestant) answer(seconds float64, found int) {
	// the handler may still be at it
	before := uint64(0)
	poll(func() bool {
		time.Sleep(2 * time.Millisecond)
		now := c.calls.Load()
		settled := now == before
		before = now
		return settled
	})
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		log.Fatal(err)
	}
	cpu := time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
	line, err := json.Marshal(answer{seconds, cpu, len(c.indexer.ListKeys()), before, found})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(line))
}

func poll(done func() bool) {
	for !done() {
		time.Sleep(200 * time.Microsecond)
	}
}

// scattered is a number below count for each below count, far from its neighbours'.
func scattered(nth, count uint64) uint64 {
	stride := uint64(float64(count)*0.618) | 1
	for gcd(stride, count) != 1 {
		stride += 2
	}
	return nth % count * stride % count
}

func gcd(one, other uint64) uint64 {
	for other != 0 {
		one, other = other, one%other
	}
	return one
}

func stripManagedFields(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		pod.ManagedFields = nil
	}
	return object, nil
}
