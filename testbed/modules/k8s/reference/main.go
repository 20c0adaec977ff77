// The CronJob controller of kube-controller-manager, alone, with a clock that may run ahead, in one namespace.
//
// The controller is the package that kube-controller-manager is built from. Its clock is a field that only its own tests
// reach, hence the reflection; everything else is set up as kube-controller-manager does, without limits on requests.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"syscall"
	"time"
	_ "time/tzdata"
	"unsafe"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes/pkg/controller/cronjob"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the account to run as")
	namespace := flag.String("namespace", "", "the namespace to work in; all without it")
	clockOffset := flag.Duration("clock-offset", 0, "by how much the controller's time runs ahead")
	workers := flag.Int("concurrent-cron-job-syncs", 5, "CronJobs worked on at once")
	flag.Parse()
	if err := run(*kubeconfig, *namespace, *clockOffset, *workers); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func run(kubeconfig, namespace string, clockOffset time.Duration, workers int) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	batch := factory.Batch().V1()
	controller, err := cronjob.NewControllerV2(ctx, batch.Jobs(), batch.CronJobs(), client)
	if err != nil {
		return err
	}
	if err := setNow(controller, func() time.Time { return time.Now().Add(clockOffset) }); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	controller.Run(ctx, workers)
	return nil
}

// setNow sets the unexported field `now`.
func setNow(controller *cronjob.ControllerV2, now func() time.Time) error {
	field := reflect.ValueOf(controller).Elem().FieldByName("now")
	if !field.IsValid() || field.Type() != reflect.TypeOf(now) {
		return fmt.Errorf("%T has no field now of type %T in this version", controller, now)
	}
	reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().Set(reflect.ValueOf(now))
	return nil
}
